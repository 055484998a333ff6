//go:build attacks

package attacks

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// telling are words that tell which federation and site answer, and who its members are.
func telling(t *testing.T, s *testbed.Site) []string {
	t.Helper()
	st, err := s.Status(within(t))
	must(t, err)
	words := []string{st.Federation, strings.ReplaceAll(st.Federation, "-", "")}
	for _, s := range shared.Sites {
		words = append(words, s.Name)
	}
	return words
}

// TestOpenSSLLearnsAKeyOnly: s_client sees a handshake of TLS 1.3 and a self-signed key, and nothing answers what it
// sends: a preamble, or a request of HTTP.
func TestOpenSSLLearnsAKeyOnly(t *testing.T) {
	attacked(t)
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("openssl is missing: install it (apt-get install openssl)")
	}
	for _, s := range shared.Sites {
		for what, input := range map[string][]byte{
			"a preamble": relay.Preamble{Kind: relay.KindJoin, Group: stranger(t, "x").Group, Site: "x"}.Encode(),
			"HTTP":       []byte("GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"),
			"an enroll":  append(relay.Preamble{Kind: relay.KindEnroll, Site: "x"}.Encode(), 0, 0, 0, 2, '{', '}'),
		} {
			for _, alpn := range []string{identity.Protocol, "h2", ""} {
				out := openssl(t, peerOf(t, s).Addr, alpn, input)
				if alpn == identity.Protocol && !strings.Contains(out, "ED25519") {
					t.Errorf("%s shows no key:\n%s", s.Name, out)
				}
				for _, word := range append(telling(t, s), "HTTP/1.1 2", "admitted", "refused") {
					if strings.Contains(out, word) {
						t.Errorf("%s tells %q to %s over %q:\n%s", s.Name, word, what, alpn, out)
					}
				}
			}
		}
	}
}

// openssl connects as its user would, without a key, and returns all that it prints.
func openssl(t *testing.T, addr, alpn string, input []byte) string {
	t.Helper()
	args := []string{"s_client", "-connect", addr, "-ign_eof"}
	if alpn != "" {
		args = append(args, "-alpn", alpn)
	}
	cmd := exec.CommandContext(within(t), "openssl", args...)
	cmd.Stdin = bytes.NewReader(input)
	out, _ := cmd.CombinedOutput() // the broker ends it
	return string(out)
}

// TestPlainBytes: who speaks no TLS is told at most which port this is, and to join by a token; never by whom.
func TestPlainBytes(t *testing.T) {
	attacked(t)
	const http = "HTTP/1.1 400 Bad Request"
	for what, c := range map[string]struct{ sends, begins string }{
		"HTTP":           {"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", http},
		"a login":        {"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", http},
		"a preamble":     {string(relay.Preamble{Kind: relay.KindJoin, Site: "x"}.Encode()), "\x08\x00"},
		"an old one":     {"CSHR\x01\x03" + strings.Repeat("\x00", 16) + "\x01\x00x", "\x08\x00"},
		"ssh":            {"SSH-2.0-OpenSSH_9.2\r\n" + strings.Repeat("x", 64), ""},
		"zeros":          {strings.Repeat("\x00", 4096), ""},
		"half a hello":   {"\x16\x03\x01\x02\x00", ""},
		"a hello's junk": {"\x16\x03\x01\x00\x20" + strings.Repeat("\xff", 32), ""},
		"PROXY":          {"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", ""},
	} {
		for _, s := range shared.Sites {
			got := exchange(t, peerOf(t, s).Addr, c.sends)
			if !strings.HasPrefix(got, c.begins) {
				t.Errorf("%s to %s: %q", what, s.Name, got)
			}
			for _, word := range telling(t, s) {
				if strings.Contains(got, word) {
					t.Errorf("%s tells %q to %s: %q", s.Name, word, what, got)
				}
			}
		}
	}
}

// exchange sends bytes, ends its half of the connection, and returns what comes until the other end closes.
func exchange(t *testing.T, addr, sends string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, limit)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(limit)))
	_, err = io.WriteString(conn, sends)
	must(t, err)
	_ = conn.(*net.TCPConn).CloseWrite() // it may be closed by now
	got, _ := io.ReadAll(conn)           // a reset is an end, too
	return string(got)
}

// TestSilentConnections: 200 connections a broker that say nothing, or half of a greeting, keep no member out.
func TestSilentConnections(t *testing.T) {
	attacked(t)
	for _, s := range shared.Sites {
		for i := range 200 {
			conn, err := net.DialTimeout("tcp", peerOf(t, s).Addr, limit)
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = io.WriteString(conn, []string{"", "CSH", "\x16\x03\x01", "GE"}[i%4])
		}
	}
	who := mallory(t)
	for _, s := range shared.Sites {
		conn, err := who.Dial(within(t), peerOf(t, s), relay.KindForward)
		if err != nil {
			t.Errorf("a member at %s: %v", s.Name, err)
			continue
		}
		_ = conn.Close()
	}
	healthy(t)
}
