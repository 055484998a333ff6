package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// limit bounds a whole test; nothing waits for it when all is well.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func request1(t *testing.T, ctx context.Context, method, url, kind string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestLinesAreAnsweredAsTheyCome: a client that waits for each result before
// it sends the next line is served, and order is kept.
func TestLinesAreAnsweredAsTheyCome(t *testing.T) {
	s := serve(t, newFake("site-1"), Config{})
	in, out := io.Pipe()
	go func() { _, _ = io.WriteString(out, `{"command":["0"]}`+"\n") }()
	res := request1(t, limit(t), "POST", "http://"+s.Addr()+"/v1/jobs", nd, in)
	results := bufio.NewScanner(res.Body)
	for i := 1; i <= 3; i++ {
		if !results.Scan() || !strings.Contains(results.Text(), fmt.Sprintf(`"id":"site-1.%d"`, i)) {
			t.Fatalf("result %d: %s %v", i, results.Text(), results.Err())
		}
		if _, err := io.WriteString(out, `{"command":["next"]}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if !results.Scan() || results.Scan() || results.Err() != nil {
		t.Errorf("want exactly one more result, then the end: %v", results.Err())
	}
}

// TestManyLines: chunks are bounded, every line has its result in order, and a
// client that reads nothing before it has sent all is served too.
func TestManyLines(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	const n = 5000
	var body bytes.Buffer
	for i := range n {
		if i%7 == 3 {
			fmt.Fprintf(&body, `{"command":[],"name":"%d"}`+"\n", i)
			continue
		}
		fmt.Fprintf(&body, `{"command":["x"],"name":"%d"}`+"\n", i)
	}
	res := request1(t, limit(t), "POST", "http://"+s.Addr()+"/v1/jobs", nd, &body)
	if res.StatusCode != 202 || res.Header.Get("Content-Type") != nd {
		t.Fatalf("%s %s", res.Status, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	accepted := 0
	for i := range n {
		if !lines.Scan() {
			t.Fatalf("ends after %d lines: %v", i, lines.Err())
		}
		var r struct {
			ID   string
			Line int
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if i%7 == 3 {
			if r.Line != i+1 {
				t.Fatalf("line %d: %s", i+1, lines.Text())
			}
			continue
		}
		accepted++
		if want := fmt.Sprintf("site-1.%d", accepted); r.ID != want {
			t.Fatalf("line %d: id %s, want %s", i+1, r.ID, want)
		}
	}
	if lines.Scan() {
		t.Errorf("one line too many: %s", lines.Text())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, size := range f.chunks {
		if size > 1000 {
			t.Errorf("a chunk of %d lines", size)
		}
	}
}

// TestLineKeys: line n has KEY/n; a repeat of the request gives the same ids and
// says in each line that it is one.
func TestLineKeys(t *testing.T) {
	s := newServer(newFake("site-1"))
	body := "{\"command\":[\"a\"]}\n{\"command\":[\"b\"]}\n"
	first := ask(s, "POST", "/v1/jobs", nd, body, wire.HeaderKey, "k").Body.String()
	again := ask(s, "POST", "/v1/jobs", nd, body, wire.HeaderKey, "k").Body.String()
	if repeat := strings.ReplaceAll(first, "}\n", ",\"replayed\":true}\n"); again != repeat || strings.Count(first, "site-1.2") != 1 {
		t.Errorf("first %s again %s", first, again)
	}
	other := ask(s, "POST", "/v1/jobs", js, `{"command":["z"]}`, wire.HeaderKey, "k/2")
	if other.Code != 422 {
		t.Errorf("another body under k/2: %d", other.Code)
	}
}

// TestTooManyBytesOfLines: announced, 413 at once; else the last line says so.
func TestTooManyBytesOfLines(t *testing.T) {
	s := serve(t, newFake("site-1"), Config{MaxLines: 100})
	line := `{"command":["a"],"name":"a name of some length"}` + "\n"
	body := strings.Repeat(line, 5)
	if res := request1(t, limit(t), "POST", "http://"+s.Addr()+"/v1/jobs", nd, strings.NewReader(body)); res.StatusCode != 413 {
		t.Errorf("announced: %s", res.Status)
	}
	res := request1(t, limit(t), "POST", "http://"+s.Addr()+"/v1/jobs", nd, io.MultiReader(strings.NewReader(body)))
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(got) != 3 || !strings.Contains(got[2], "too-large") {
		t.Errorf("want two ids and a problem:\n%s", text)
	}
}

// TestSlowBody: a client that stops sending is answered, not waited for.
func TestSlowBody(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{BodyTimeout: 50 * time.Millisecond})
	conn := dial(t, s)
	send1(t, conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"comm")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 408 || !strings.Contains(string(body), "slow-body") {
		t.Errorf("%s: %s", res.Status, body)
	}
}

// TestCutBody: a body that ends early is no job.
func TestCutBody(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	conn := dial(t, s)
	send1(t, conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"command\":[\"a\"]}")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.jobs) != 0 || !strings.Contains(string(text), "400 Bad Request") {
		t.Errorf("%d jobs: %s", len(f.jobs), text)
	}
}

// TestGarbage: whatever comes to the port, the server answers 400 or closes,
// and goes on.
func TestGarbage(t *testing.T) {
	s := serve(t, newFake("site-1"), Config{})
	for _, bytes := range []string{
		"\x00\x01\x02\xff\xfe\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("y", 200<<10) + "\r\n\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
		"GET /v1/jobs/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.1\r\nHo",
	} {
		conn := dial(t, s)
		_, _ = conn.Write([]byte(bytes)) // the server may have closed before all was sent
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1))
		_ = conn.Close()
	}
	if res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/livez", "", nil); res.StatusCode != 200 {
		t.Errorf("after garbage: %s", res.Status)
	}
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send1(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// pipeLog is a log that the test feeds; closed says that the broker's side of
// it was closed.
type pipeLog struct {
	*io.PipeReader
	closed chan struct{}
}

func (p pipeLog) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return p.PipeReader.Close()
}

// follow gives the fake a log that is fed through the returned writer.
func follow(f *fakeBroker) (*io.PipeWriter, chan struct{}) {
	in, out := io.Pipe()
	closed := make(chan struct{})
	log := &onceLog{pipeLog: pipeLog{in, closed}}
	f.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) { return log, nil }
	return out, closed
}

// TestFollowStreams: what the task writes arrives at once, and the broker's
// side is closed when the client leaves.
func TestFollowStreams(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	feed, closed := follow(f)
	ctx, leave := context.WithCancel(limit(t))
	res := request1(t, ctx, "GET", "http://"+s.Addr()+"/v1/jobs/site-1.1/logs?follow=true", "", nil)
	for _, text := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(feed, text); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != text {
			t.Fatalf("got %q %v, want %q", got, err, text)
		}
	}
	leave()
	select {
	case <-closed:
	case <-limit(t).Done():
		t.Error("the log was not closed after the client left")
	}
}

// TestBrokenLogIsNotWhole: a log that fails half way must not look complete.
func TestBrokenLogIsNotWhole(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	f.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errDisk))), nil
	}
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-1.1/logs", "", nil)
	if got, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q without an error", got)
	}
}

// TestShutdownEndsFollowers, and lets the server be stopped again and before
// it was started.
func TestShutdownEndsFollowers(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	_, closed := follow(f)
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-1.1/logs?follow=true", "", nil)
	for range 2 {
		if err := s.Shutdown(limit(t)); err != nil {
			t.Fatal(err)
		}
	}
	<-closed
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("a log that its stopping broker cut looks whole")
	}
	if err := newServer(f).Shutdown(limit(t)); err != nil {
		t.Errorf("shutdown before start: %v", err)
	}
	if err := s.Start(); err == nil {
		t.Error("a second start was accepted")
	}
}

func TestTakenAddress(t *testing.T) {
	f := newFake("site-1")
	first := serve(t, f, Config{})
	second := New(Config{Listen: first.Addr()}, f, prometheus.NewRegistry(), zerolog.Nop())
	if err := second.Start(); err == nil || !strings.Contains(err.Error(), first.Addr()) {
		t.Errorf("start on a taken address: %v", err)
	}
}
