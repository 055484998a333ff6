package relay

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// otherPort answers as another port of a broker does.
func otherPort(t *testing.T, answer func(first [4]byte) []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			first := make([]byte, 4096)
			n, _ := conn.Read(first)
			if n >= 4 {
				_, _ = conn.Write(answer([4]byte(first)))
			}
			_ = conn.Close()
		}
	}()
	return ln.Addr().String()
}

// TestOtherPortsBehindTLS: a broker that dials with its key reads which port it was that answered.
func TestOtherPortsBehindTLS(t *testing.T) {
	s := newSecured(t)
	plain, _ := port(t, "z", &logged{})
	for name, c := range map[string]struct {
		addr string
		is   error
		want string
	}{
		"the API's port": {
			otherPort(t, Misdialed("the API's port (http) of site z")), ErrNoPeerPort,
			"that is no peer port, but the API's port (http) of site z: give that broker's peer address",
		},
		"an HTTP server": {
			otherPort(t, func([4]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }), errPreamble,
			"HTTP is spoken there: give the broker's peer address",
		},
		"another server": {
			otherPort(t, func([4]byte) []byte { return []byte("220 mail\r\n") }), nil, "something else than TLS is spoken there",
		},
		"a member without keys": {plain, ErrNoKeysThere, "another federation"},
	} {
		_, err := s.dial(s.keys["b"], "b", Peer{Site: "a", Addr: c.addr}, KindForward)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlainAtAPortWithKeys: who speaks plain to it is told what to do, and is no member.
func TestPlainAtAPortWithKeys(t *testing.T) {
	s := newSecured(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := Dialer{Net: &Network{}, Site: "b"}
	if _, err := d.Dial(ctx, Peer{Site: "a", Addr: s.addr}, KindForward, testGroup); !errors.Is(err, ErrNoKey) {
		t.Errorf("%v, want ErrNoKey", err)
	}
}

// TestHTTPAtThePeerPort: a browser reads which port it has asked, with keys and without.
func TestHTTPAtThePeerPort(t *testing.T) {
	plain, _ := port(t, "z", &logged{})
	for _, addr := range []string{newSecured(t).addr, plain} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "the peer port of a CloudShare broker") {
			t.Errorf("%s %s %v", res.Status, body, err)
		}
	}
}
