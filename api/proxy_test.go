package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// onceLog closes its pipe once, from whichever side comes first.
type onceLog struct {
	pipeLog
	once sync.Once
	err  error
}

func (o *onceLog) Close() error {
	o.once.Do(func() { o.err = o.pipeLog.Close() })
	return o.err
}

// TestForward: any broker shows the outline of any other's jobs; only their own one shows what they write, and ends
// them.
func TestForward(t *testing.T) {
	owner := newFake("site-2")
	there := serve(t, owner, Config{})
	ask(there, "POST", "/v1/jobs", js, `{"command":["a"],"count":2}`)
	asked := newFake("site-1")
	asked.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "owner"}
	here := serve(t, asked, Config{})
	owner.index = 99

	for path, want := range map[string]string{
		"/v1/jobs/site-2.1":               `"id":"site-2.1"`,
		"/v1/jobs/site-2.1/tasks?limit=1": `"next":"1"`,
		"/v1/jobs/site-2.7":               "not-found",
	} {
		res := request1(t, limit(t), "GET", "http://"+here.Addr()+path, "", nil)
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s %v, want %s", path, body, err, want)
		}
		if index := res.Header.Values(wire.HeaderIndex); len(index) != 1 || index[0] != "99" {
			t.Errorf("%s: index %v, want that of the broker that answered", path, index)
		}
	}
	for _, what := range []string{"GET /v1/jobs/site-2.1/logs", "DELETE /v1/jobs/site-2.1", "POST /v1/jobs/site-2.1/rerun", "POST /v1/jobs/site-2.1/hold"} {
		method, path, _ := strings.Cut(what, " ")
		if w := ask(here, method, path, "", ""); w.Code != 403 || !strings.Contains(w.Body.String(), ":not-owner") {
			t.Errorf("%s at another site's broker: %d %s", what, w.Code, w.Body)
		}
	}
	if owner.jobs[0].State != "queued" {
		t.Error("it was cancelled")
	}
}

// TestForwardLog: an owner's broker passes on what the executor's one sends, as it comes.
func TestForwardLog(t *testing.T) {
	executor := newFake("site-2")
	there := serve(t, executor, Config{})
	owner := newFake("site-1")
	owner.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "executor"}
	here := serve(t, owner, Config{})
	executor.jobs = []node.Job{{ID: command.JobID{Site: "site-1", Num: 1}, State: "running"}}
	executor.site, executor.name = "site-1", "site-2" // it runs the owner's job
	feed, closed := follow(executor)
	res := request1(t, limit(t), "GET", "http://"+here.Addr()+"/v1/jobs/site-1.1/logs?follow=true", "", nil)
	if _, err := io.WriteString(feed, "live\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "live\n" {
		t.Fatalf("followed through two brokers: %q %v", got, err)
	}
	_ = res.Body.Close()
	<-closed
}

// TestForwardEnds: brokers that each believe in the other one end in a
// problem, and so do sites that are away.
func TestForwardEnds(t *testing.T) {
	a, b := newFake("site-1"), newFake("site-2")
	atA, atB := serve(t, a, Config{}), serve(t, b, Config{})
	a.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(atB), Role: "owner"}
	b.elseErr = &node.ElsewhereError{Site: "site-1", Peer: peerOf(atA), Role: "executor"}
	expect(t, atA, "owner-unreachable")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // nobody listens there now
		t.Fatal(err)
	}
	a.elseErr = fmt.Errorf("logs: %w", &node.ElsewhereError{Site: "site-2", Peer: l.Addr().String(), Role: "executor"})
	expect(t, atA, "executor-unreachable")
	a.elseErr = &node.ElsewhereError{Site: "site-2", Role: "executor"}
	expect(t, atA, "executor-unreachable")
}

// TestForwardToAnother: what answers at a site's address and is not that site's broker
// answers nothing for it.
func TestForwardToAnother(t *testing.T) {
	a, other := newFake("site-1"), newFake("site-3")
	atA := serve(t, a, Config{Federation: "fed"})
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	namesake := newFake("site-2")
	namesake.jobs = []node.Job{{ID: command.JobID{Site: "site-2", Num: 1}, State: "queued"}}
	for name, tc := range map[string]struct{ at, want string }{
		"another site":       {peerOf(serve(t, other, Config{Federation: "fed"})), `is not it (another one answers there: the broker of site "site-3"): correct `},
		"another federation": {peerOf(serve(t, namesake, Config{Federation: "other"})), "a broker of another federation"},
		"another server":     {strings.TrimPrefix(page.URL, "http://"), "is not it (another one answers there: no broker)"},
		"nobody":             {"127.0.0.1:1", "does not answer (dial tcp 127.0.0.1:1: connect: connection refused): correct "},
	} {
		a.elseErr = &node.ElsewhereError{Site: "site-2", Peer: tc.at, Role: "owner"}
		w := ask(atA, "GET", "/v1/jobs/site-2.1", "", "")
		if body := w.Body.String(); w.Code != 503 || !strings.Contains(body, strings.ReplaceAll(tc.want, `"`, `\"`)) ||
			!strings.Contains(body, "its broker at "+tc.at) || !strings.Contains(body, "`advertise` or `peer` of site-2") {
			t.Errorf("%s: %d %s", name, w.Code, body)
		}
		w = ask(atA, "GET", "/v1/wait?job=site-2.1&wait=5s", "", "")
		if body := w.Body.String(); !strings.Contains(body, "owner-unreachable") ||
			!strings.Contains(body, strings.ReplaceAll(tc.want, `"`, `\"`)) {
			t.Errorf("%s, wait: %d %s", name, w.Code, body)
		}
		a.elseErr = &node.AnywhereError{
			Query: node.LogQuery{Attempt: 1},
			Sites: []node.ElsewhereError{{Site: "site-2", Peer: tc.at}}, What: "attempt 1",
		}
		if w := ask(atA, "GET", "/v1/jobs/site-1.1/logs?attempt=1", "", ""); w.Code != 503 || !strings.Contains(w.Body.String(), tc.at) {
			t.Errorf("%s, search: %d %s", name, w.Code, w.Body)
		}
	}
}

func expect(t *testing.T, s *Server, name string) {
	t.Helper()
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-2.1/tasks", "", nil)
	var p wire.Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 503 || p.Type != wire.ProblemPrefix+name || res.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s, want 503 %s", res.Status, p.Type, name)
	}
}

// TestForeignHops: what a broker writes into the header cannot make brokers pass a
// request on forever, and what a client writes there is nothing.
func TestForeignHops(t *testing.T) {
	f := newFake("site-1")
	f.elseErr = &node.ElsewhereError{Site: "site-2", Peer: "127.0.0.1:1", Role: "owner"}
	s := newServer(f)
	for _, hops := range []string{"2", "-1", "99999999999999999999", "x"} {
		w := askAsPeer(s, "GET", "/v1/jobs/site-2.1", wire.HeaderHops, hops)
		if w.Code != 503 || !strings.Contains(w.Body.String(), "passed on") {
			t.Errorf("hops %q: %d %s", hops, w.Code, w.Body)
		}
		w = ask(s, "GET", "/v1/jobs/site-2.1", "", "", wire.HeaderHops, hops)
		if w.Code != 503 || !strings.Contains(w.Body.String(), "connection refused") {
			t.Errorf("a client's hops %q count: %d %s", hops, w.Code, w.Body)
		}
	}
}
