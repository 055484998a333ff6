package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// text is a state that is written in two pieces.
type text string

func (s text) Write(w io.Writer) error {
	_, err := io.WriteString(w, string(s[:len(s)/2]))
	if err == nil {
		_, err = io.WriteString(w, string(s[len(s)/2:]))
	}
	return err
}

// broken fails behind its first byte.
type broken struct{}

func (broken) Write(w io.Writer) error {
	_, _ = io.WriteString(w, "x")
	return errors.New("the state cannot be written")
}

func header() Header {
	return Header{
		ID: strings.Repeat("01", 16), Federation: strings.Repeat("ab", 16), Epoch: 2, Lineage: strings.Repeat("cd", 16),
		Entry: 2<<40 + 7, StateHash: "00", Term: 4, Backend: "raft", Site: "lab-a", LastTerm: 4, LastIndex: 99,
		Voters: []string{"lab-a", "lab-b"}, ExportedAt: time.UnixMilli(1_700_000_000_000).UTC(), Version: "dev",
	}
}

func created(t *testing.T, state Content) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fed.state")
	if err := Create(path, header(), state); err != nil {
		t.Fatal(err)
	}
	return path
}

// opens wants an error of a kind, in one line that names the file.
func opens(t *testing.T, path string, want error) {
	t.Helper()
	f, err := Open(path)
	if f != nil || !errors.Is(err, want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v: not %v", f, err, want)
	}
}

// TestWhole: what is written is read again, and its head says what it is.
func TestWhole(t *testing.T) {
	path := created(t, text("all jobs\nand the ledger"))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !reflect.DeepEqual(f.Header, header()) {
		t.Errorf("header %+v", f.Header)
	}
	for range 2 {
		if b, err := io.ReadAll(f.State()); err != nil || string(b) != "all jobs\nand the ledger" {
			t.Errorf("state %q, %v", b, err)
		}
	}
	b, err := os.ReadFile(path)
	lines := strings.SplitN(string(b), "\n", 3)
	var h Header
	if err != nil || lines[0] != "cloudshare federation state 1" || json.Unmarshal([]byte(lines[1]), &h) != nil {
		t.Errorf("head %q, %v", lines[:2], err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestNothingHalf: a name that is taken stays as it is, and an error leaves
// nothing behind.
func TestNothingHalf(t *testing.T) {
	path := created(t, text("first"))
	before, _ := os.ReadFile(path)
	if err := Create(path, header(), text("second")); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "another name") {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file changed")
	}
	if err := Create(path+".2", header(), broken{}); err == nil {
		t.Error("no error")
	}
	if err := Create(filepath.Join(path, "x"), header(), text("first")); err == nil {
		t.Error("a file is no folder")
	}
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDamage: no byte can be another one, and none can be missing.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(created(t, text("all jobs")))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.state")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 4
		write(b)
		if f, err := Open(path); f != nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotState) &&
			!errors.Is(err, ErrNewFormat) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		write(whole[:i])
		if f, err := Open(path); f != nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotState) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	write(append(bytes.Clone(whole), 0))
	opens(t, path, ErrDamaged)
	write(bytes.Replace(whole, []byte("state 1\n"), []byte("state 2\n"), 1))
	opens(t, path, ErrNewFormat)
	write(bytes.Repeat([]byte("x"), 1<<20))
	opens(t, path, ErrNotState)
	write([]byte("cloudshare federation state 1\n" + strings.Repeat("x", 1<<20)))
	opens(t, path, ErrDamaged)
	opens(t, filepath.Dir(path), ErrNotState)
	opens(t, path+".none", fs.ErrNotExist)
}

// TestStrangeHeader: a whole file whose header this version does not understand.
func TestStrangeHeader(t *testing.T) {
	h := header()
	h.Federation = "ab"
	path := filepath.Join(t.TempDir(), "fed.state")
	if err := Create(path, h, text("all jobs")); err != nil {
		t.Fatal(err)
	}
	opens(t, path, ErrDamaged)
	h = header()
	h.Version = strings.Repeat("v", MaxHeader)
	if err := Create(path+".2", h, text("all jobs")); err == nil {
		t.Error("a header beyond its bound was written")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("cloudshare federation state 1\n{}\n"))
	path := filepath.Join(f.TempDir(), "fed.state")
	if err := Create(path, header(), text("all jobs")); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "fed.state")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(path); err == nil {
			_, _ = io.Copy(io.Discard, s.State())
			_ = s.Close()
		}
	})
}
