package api

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// Found by a hostile user: a client that closed its half of the connection after
// a whole request was told 503, while its job ran.
func TestHalfClosedClientIsAnswered(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"command":["true"]}`
	fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 202")) {
		t.Errorf("%v, %q", err, strings.SplitN(string(answer), "\r\n", 2)[0])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked.Done() != nil {
		t.Error("an accepted job depends on its client's connection")
	}
}
