package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestSlowloris: connections that send their headers a byte at a time, or
// nothing at all, are closed when their time is over, and meanwhile hold up
// nobody as long as there is room for one more.
func TestSlowloris(t *testing.T) {
	const slow = 50
	s := serve(t, newFake("site-1"), Config{MaxConns: slow + 1, HeaderTimeout: 2 * time.Second})
	var conns []net.Conn
	for i := range slow {
		conn := dial(t, s)
		if i%2 == 0 {
			send1(t, conn, "GET /v1/queue HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		}
		conns = append(conns, conn)
	}
	if res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/queue", "", nil); res.StatusCode != 200 {
		t.Errorf("beside them: %s", res.Status)
	}
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || strings.HasPrefix(string(text), "HTTP/1.1 2") {
			t.Fatalf("connection %d was not closed: %v %q", i, err, text)
		}
	}
}

// TestTooManyConnections: beyond MaxConns a connection waits for room, and gets
// it when another one ends.
func TestTooManyConnections(t *testing.T) {
	const most, all = 20, 200
	s := serve(t, newFake("site-1"), Config{MaxConns: most})
	errs := make(chan error, all)
	for range all {
		go func() {
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				errs <- err
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, err = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if err == nil {
				var status string
				if status, err = bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.Contains(status, "200") {
					err = fmt.Errorf("answered %q", status)
				}
			}
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// TestReaderThatTakesNothing: an answer that its client does not take holds its
// connection for BodyTimeout only.
func TestReaderThatTakesNothing(t *testing.T) {
	s := serve(t, heavy(t, 500), Config{BodyTimeout: 100 * time.Millisecond, MaxConns: 1})
	conn := dial(t, s)
	send1(t, conn, "GET /v1/jobs?limit=500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil { // it is being answered
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(limit(t), http.MethodGet, "http://"+s.Addr()+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req) // there is room for one
	if err != nil {
		t.Fatal("the connection is still held: ", err)
	}
	_ = res.Body.Close()
}

// TestSlowReaderIsNotCut: one that takes a large answer slowly gets all of it, however long that takes.
func TestSlowReaderIsNotCut(t *testing.T) {
	const bound, jobs = 30 * time.Second, 300
	s := newServer(heavy(t, jobs))
	synctest.Test(t, func(t *testing.T) {
		begin, w := time.Now(), &slowReader{ResponseRecorder: httptest.NewRecorder(), takes: bound - 1}
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/jobs?limit="+strconv.Itoa(jobs), nil))
		if got, took := w.Body.Len(), time.Since(begin); got < jobs<<16 || took < 100*bound {
			t.Errorf("got %d bytes in %v", got, took)
		}
	})
}

// slowReader is a client that takes so long for each write.
type slowReader struct {
	*httptest.ResponseRecorder
	takes time.Duration
	until time.Time
}

// SetWriteDeadline is what http.ResponseController looks for.
func (w *slowReader) SetWriteDeadline(at time.Time) error { w.until = at; return nil }

// Write implements io.Writer.
func (w *slowReader) Write(p []byte) (int, error) {
	<-time.After(w.takes) // in a bubble
	if time.Now().After(w.until) {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseRecorder.Write(p)
}

// heavy has so many jobs of 64 KiB.
func heavy(t *testing.T, jobs int) *fakeBroker {
	t.Helper()
	f := newFake("site-1")
	spec, err := jobspec.ParseSpec([]byte(`{"command":["` + strings.Repeat("x", 1<<16) + `"]}`))
	if err != nil {
		t.Fatal(err)
	}
	reqs := make([]node.Request, jobs)
	for i := range reqs {
		reqs[i].Spec = spec
	}
	f.Submit(t.Context(), reqs)
	return f
}
