package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/node"
)

// patientLog is the output of a task that has not begun: a reader waits until
// it closes the log.
type patientLog chan struct{}

func (p patientLog) Read([]byte) (int, error) { <-p; return 0, io.EOF }
func (p patientLog) Close() error {
	select {
	case <-p:
	default:
		close(p)
	}
	return nil
}

// crowdOf opens connections that send a request and stay, and tells how many
// were answered by which status.
func crowdOf(t *testing.T, s *Server, n int, request string) map[int]int {
	t.Helper()
	type result struct {
		status int
		err    error
	}
	results := make(chan result, n)
	for range n {
		conn := dial(t, s)
		go func() {
			_, err := io.WriteString(conn, request)
			if err != nil {
				results <- result{err: err}
				return
			}
			from := bufio.NewReader(conn)
			res, err := http.ReadResponse(from, nil)
			if err != nil {
				results <- result{err: err}
				return
			}
			if res.StatusCode == http.StatusServiceUnavailable { // and hung up on
				_, err = io.Copy(io.Discard, from)
				_ = conn.Close()
			}
			results <- result{res.StatusCode, err}
		}()
	}
	seen := map[int]int{}
	for range n {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		seen[r.status]++
	}
	return seen
}

// alive asks a probe on a connection of its own.
func alive(t *testing.T, s *Server, beside string) {
	t.Helper()
	conn := dial(t, s)
	send1(t, conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "200") {
		t.Errorf("a probe beside %s: %q %v", beside, line, err)
	}
}

// Found by review: followers of logs were in no limit and took all connections,
// so that probes failed. Twice as many clients as there are connections stay:
// those beyond the bounds are refused and hung up on, and idle ones make room.
func TestFollowersLeaveRoom(t *testing.T) {
	const most, all = 400, 800
	f := newFake("site-1")
	f.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) { return make(patientLog), nil }
	s := serve(t, f, Config{MaxConns: most})
	ask(s, "POST", "/v1/jobs", js, `{"command":["sleep","9"]}`)
	page := "GET /jobs/site-1.1/log HTTP/1.1\r\nHost: localhost\r\n\r\n"
	if got := crowdOf(t, s, 50, page); got[200] != 50 {
		t.Errorf("pages that show a log: %v", got)
	}
	got := crowdOf(t, s, all, "GET /v1/jobs/site-1.1/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got[200] != most/4-50 || got[503] != all-most/4+50 {
		t.Errorf("followers: %v", got)
	}
	alive(t, s, "followers")
	if w := ask(s, "GET", "/jobs/site-1.1/log", "", ""); w.Code != 503 || w.Header().Get("Connection") != "close" || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more page: %d %v", w.Code, w.Header())
	}
	if got = crowdOf(t, s, all, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); got[200] != most/2 || got[503] != all-most/2 {
		t.Errorf("event streams: %v", got)
	}
	alive(t, s, "event streams")
	if got = crowdOf(t, s, all/2, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"); got[200] != all/2 {
		t.Errorf("clients that keep their connections: %v", got)
	}
	alive(t, s, "idle connections")
}

// TestSlowBodiesLeaveRoom: of bodies that come a byte now and then few are waited
// for, whichever form they have; the others are told so, and those that stay are
// served once all has come.
func TestSlowBodiesLeaveRoom(t *testing.T) {
	const most, all = 80, 60
	s := serve(t, newFake("site-1"), Config{MaxConns: most})
	body := `{"command":["true"]}`
	head := "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	answers := make(chan string, all)
	var conns []net.Conn
	for i := range all {
		conn := dial(t, s)
		send1(t, conn, head+body[:1])
		conns = append(conns, conn)
		go func() {
			line, _ := bufio.NewReader(conn).ReadString('\n')
			answers <- strconv.Itoa(i) + " " + strings.TrimSpace(line)
		}()
	}
	stay := map[string]bool{}
	for i := range conns {
		stay[strconv.Itoa(i)] = true
	}
	for range all - most/8 {
		i, line, _ := strings.Cut(<-answers, " ")
		if !strings.HasPrefix(line, "HTTP/1.1 503") {
			t.Errorf("connection %s: %q", i, line)
		}
		delete(stay, i)
	}
	alive(t, s, "slow bodies")
	for i := range stay {
		n, _ := strconv.Atoi(i)
		send1(t, conns[n], body[1:])
	}
	for range most / 8 {
		if i, line, _ := strings.Cut(<-answers, " "); !strings.HasPrefix(line, "HTTP/1.1 202") {
			t.Errorf("connection %s, whose body came at last: %q", i, line)
		}
	}
	if n := s.slow.Taken(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

// TestForwardedReadsAreCounted: a blocking read and a followed log that another
// broker answers hold a place here, too.
func TestForwardedReadsAreCounted(t *testing.T) {
	owner := newFake("site-2")
	owner.found(t)
	owner.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) { return make(patientLog), nil }
	there := serve(t, owner, Config{})
	ask(there, "POST", "/v1/jobs", js, `{"command":["echo"]}`)
	f := newFake("site-1")
	f.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "owner"}
	here := serve(t, f, Config{MaxWaiters: 1, MaxFollowers: 1})
	for path, taken := range map[string]*transport.Places{
		"/v1/jobs/site-2.1?index=1000":       here.waiters,
		"/v1/jobs/site-2.1/logs?follow=true": here.followers,
	} {
		leave, err := taken.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w := ask(here, "GET", path, "", ""); w.Code != 503 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), "too-many-waiters") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		leave()
	}
}
