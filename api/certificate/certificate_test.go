package certificate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// pair makes a certificate and its key in two files of a folder.
func pair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	if _, err := OpenSelfMade(dir, name, []string{name}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile)
}

func commonName(t *testing.T, get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) string {
	t.Helper()
	c, err := get(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf.Subject.CommonName
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A new pair counts at the next look; one that is broken, half written or gone leaves the one before, and is told once.
func TestFilesAreReadAgain(t *testing.T) {
	cert, key := pair(t, t.TempDir(), "old")
	nextCert, nextKey := pair(t, t.TempDir(), "new")
	var log bytes.Buffer
	f, err := OpenFiles(cert, key, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	f.now = func() time.Time { now = now.Add(lookEvery); return now }
	want := func(what, name, told string, lines int) {
		t.Helper()
		for range 2 {
			if got := commonName(t, f.Get); got != "CloudShare site "+name {
				t.Errorf("%s: %s", what, got)
			}
		}
		if got := log.String(); !strings.Contains(got, told) || strings.Count(got, "\n") != lines {
			t.Errorf("%s: told %q, want %d lines with %q", what, got, lines, told)
		}
		log.Reset()
	}
	want("nothing has changed", "old", "", 0)
	copyFile(t, nextCert, cert)
	want("the certificate alone", "old", "private key does not match", 1)
	copyFile(t, nextKey, key)
	want("both", "new", "taken from its files", 1)
	if err = os.WriteFile(cert, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	want("half of a file", "new", cert, 1)
	if err = os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	want("no file", "new", "no such file", 1)
	copyFile(t, nextCert, cert)
	want("repaired", "new", "taken from its files", 1)
}

func TestFilesMustBeAPairAtTheStart(t *testing.T) {
	cert, _ := pair(t, t.TempDir(), "a")
	_, key := pair(t, t.TempDir(), "b")
	for what, files := range map[string][2]string{
		"no match": {cert, key}, "exchanged": {key, cert}, "none": {cert, cert + ".none"},
	} {
		if _, err := OpenFiles(files[0], files[1], zerolog.Nop()); err == nil || strings.ContainsAny(err.Error(), "\n") ||
			!strings.Contains(err.Error(), files[1]) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The key stays, and with it the pin, whatever the hosts are; equal hosts have an equal certificate.
func TestSelfMade(t *testing.T) {
	dir := t.TempDir()
	open := func(hosts ...string) *SelfMade {
		t.Helper()
		s, err := OpenSelfMade(dir, "site-1", hosts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, other := open("broker.lan", "10.0.0.9", "0.0.0.0"), open("x.lan")
	again := open("0.0.0.0", "broker.lan", "10.0.0.9")
	if first.Pin != again.Pin || first.Pin != other.Pin ||
		!bytes.Equal(first.cert.Certificate[0], again.cert.Certificate[0]) ||
		bytes.Equal(first.cert.Certificate[0], other.cert.Certificate[0]) {
		t.Error("another key, or another certificate for the same hosts")
	}
	for _, host := range []string{"broker.lan", "10.0.0.9", "localhost", "127.0.0.1"} {
		if err := first.cert.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if err := first.cert.Leaf.VerifyHostname("0.0.0.0"); err == nil {
		t.Error("it names the unspecified address")
	}
	if info, err := os.Stat(filepath.Join(dir, KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, KeyFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSelfMade(dir, "site-1", nil); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged key: %v", err)
	}
}

// TestExpiredPairAtTheStart: it keeps no broker from starting, and is said.
func TestExpiredPairAtTheStart(t *testing.T) {
	cert, key := pair(t, t.TempDir(), "old")
	var log bytes.Buffer
	f, err := openFiles(cert, key, zerolog.New(&log), func() time.Time { return time.Now().AddDate(9000, 0, 0) })
	if err != nil || !strings.Contains(log.String(), "has expired") {
		t.Fatalf("%v, told %q", err, log.String())
	}
	if got := commonName(t, f.Get); got != "CloudShare site old" {
		t.Errorf("it shows %s", got)
	}
}

// TestExposedKeys: a key that the broker made is refused if others may read it; of one that somebody else sees to it is
// said, if it is open to all.
func TestExposedKeys(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, dir, "a")
	for mode, want := range map[os.FileMode]string{0o640: "chmod 600", 0o604: "mode 0604", 0o620: "pass for this broker"} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		_, err := OpenSelfMade(dir, "a", nil)
		if !errors.Is(err, wholefile.ErrExposed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%04o: %v", mode, err)
		}
		var log bytes.Buffer
		if _, err = OpenFiles(cert, key, zerolog.New(&log)); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "open to all users"); told != (mode&0o007 != 0) {
			t.Errorf("%04o: told %q", mode, log.String())
		}
	}
}
