package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestCertificateInFiles: the pair is renewed while somebody follows events. The stream goes on, new connections see
// the new one, and a pair that is broken leaves the one before.
func TestCertificateInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	renew(t, cert, key)
	b := solo.Prepare(t, "files", "--bootstrap", "--cores", "1", "--http-tls-cert", cert, "--http-tls-key", key)
	b.Launch()
	addr, token := "https://"+b.URL.Host, b.TokenFile()
	at := []string{"--addr", addr, "--token-file", token, "--ca-file", cert}
	awaitCommand(t, at, "submit", "--wait", "--", "true")
	wantCommand(t, 3, []string{"not trusted", "--ca-file"}, "--addr", addr, "--token-file", token, "sites")
	wantCommand(t, 5, []string{"ask by https://"}, "--addr", "http://"+b.URL.Host, "sites")

	events := follow(t, append(at, "events", "--from", "0")...)
	awaitLine(t, events, "files.1") // it is open
	before := shown(t, b.URL.Host)
	renew(t, cert, key)
	b.Await("the new certificate is shown", func() error {
		if shown(t, b.URL.Host) == before {
			return fmt.Errorf("still the one before")
		}
		return nil
	})
	after := shown(t, b.URL.Host)
	wantCommand(t, 0, nil, append(at, "submit", "--wait", "--", "true")...)
	awaitLine(t, events, "files.2")

	b.Must(os.WriteFile(key, []byte("broken"), 0o600))
	b.Await("the broken pair is told", func() error {
		_ = shown(t, b.URL.Host) // handshakes look at the files
		if !strings.Contains(b.LogTail(1000), "new certificate of the API not taken") {
			return fmt.Errorf("not a word in the log")
		}
		return nil
	})
	if shown(t, b.URL.Host) != after {
		t.Error("a broken pair has replaced the certificate")
	}
	wantCommand(t, 0, nil, append(at, "submit", "--wait", "--", "true")...)
	awaitLine(t, events, "files.3")
}

// TestSelfMadeCertificate: who has a token of a broker that is asked off loopback needs nothing else to trust it; a
// token that names another key is shown to nobody, and none goes out in plain.
func TestSelfMadeCertificate(t *testing.T) {
	t.Parallel()
	b := solo.Prepare(t, "own", "--bootstrap", "--cores", "1")
	_, port, err := net.SplitHostPort(b.URL.Host)
	must(t, err)
	b.Launch("--http", "0.0.0.0:"+port, "--http-tls-self-made")
	host, alice := "127.0.0.1:"+port, filepath.Join(t.TempDir(), "alice.token")
	at := []string{"--addr", host, "--token-file", b.TokenFile()} // the token says that it is HTTPS
	awaitCommand(t, at, "submit", "--wait", "--", "true")
	wantCommand(t, 0, []string{"role user"}, append(at, "token", "create", "alice", "--out", alice)...)
	wantCommand(t, 0, []string{"alice"}, "--addr", "https://localhost:"+port, "--token-file", alice, "whoami")
	wantLine(t, 2, "nothing is sent to", "--addr", "http://"+host, "--token-file", alice, "whoami")
	wantLine(t, 5, "ask by https://", "--addr", "http://"+host, "whoami")

	text, err := access.ReadText(alice)
	must(t, err)
	text, err = access.WithPin(text, &access.Pin{1})
	must(t, err)
	must(t, os.WriteFile(alice, []byte(text+"\n"), 0o600))
	wantLine(t, 3, "its key is not the one", "--addr", "https://"+host, "--token-file", alice, "whoami")
}

// wantLine is wantCommand where one line is all that is said.
func wantLine(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	got, out := command(t, args...)
	if got != code || !strings.Contains(out, text) || strings.Count(out, "\n") != 1 {
		t.Errorf("cloudshare %v: exit %d, want %d and one line with %q:\n%s", args, got, code, text, out)
	}
}

// renew replaces a certificate and its key by new ones, as a renewal does: one file after the other.
func renew(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	what := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().AddDate(1, 0, 0),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &what, &what, private.Public(), private)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		must(t, os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600))
		must(t, os.Rename(path+".new", path))
	}
}

// shown returns the fingerprint of the certificate that a new connection sees.
func shown(t *testing.T, addr string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which one it is, is asked
	must(t, err)
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].Raw)
	return hex.EncodeToString(sum[:])
}

// awaitCommand waits until a command succeeds.
func awaitCommand(t *testing.T, at []string, args ...string) {
	t.Helper()
	await(t, "cloudshare "+strings.Join(args, " "), func() error {
		if code, out := command(t, append(at[:len(at):len(at)], args...)...); code != 0 {
			return fmt.Errorf("exit %d: %s", code, out)
		}
		return nil
	})
}

// follow returns the lines of a command that does not end by itself; the test ends it.
func follow(t *testing.T, args ...string) <-chan string {
	t.Helper()
	cmd := exec.Command(cloudshare, args...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for range lines { // until it has ended
		}
		_ = cmd.Wait()
	})
	return lines
}

// awaitLine waits for a line with a text.
func awaitLine(t *testing.T, lines <-chan string, text string) {
	t.Helper()
	for ctx := within(t); ; {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				t.Fatalf("the stream has ended before %q came", text)
			case strings.Contains(line, text):
				return
			}
		case <-ctx.Done():
			t.Fatalf("%q does not come", text)
		}
	}
}
