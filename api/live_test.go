package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/archive"
)

// patientArchive exports one line, and the next one never.
type patientArchive struct {
	fakeArchive
	begun chan struct{}
}

func (f *patientArchive) Export(ctx context.Context, _ archive.Query, _ string, w io.Writer) error {
	_, _ = io.WriteString(w, "{}\n") // into an answer that is cut
	close(f.begun)
	<-ctx.Done()
	return context.Cause(ctx)
}

// holder is a server on which somebody's token opens what stays open.
type holder struct {
	*guarded
	token, id string
}

func newHolder(t *testing.T, cfg Config) *holder {
	t.Helper()
	f := newFake("site-1")
	f.found(t)
	f.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) { return make(patientLog), nil }
	g := newGuarded(t)
	cfg.Access = g.store
	g.Server = serve(t, f, cfg)
	ask(g.Server, "POST", "/v1/jobs", js, `{"command":["sleep","9"]}`, bearer(g.token)...)
	return &holder{g, g.create(access.User, time.Time{}), g.store.List()[1].ID}
}

func (h *holder) revoke() {
	h.t.Helper()
	if err := h.store.Revoke(h.id); err != nil {
		h.t.Fatal(err)
	}
}

// do sends a request with a token and returns the answer, or that there is none.
func (h *holder) do(method, path, kind string, body io.Reader, headers ...string) (*http.Response, error) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(limit(h.t), method, "http://"+h.Addr()+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for i, all := 0, append(bearer(h.token), headers...); i < len(all); i += 2 {
		r.Header.Set(all[i], all[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err == nil {
		h.t.Cleanup(func() { _ = res.Body.Close() })
	}
	return res, err
}

// What a token has opened ends once it is revoked; what another one has opened stays.
func TestRevokedWhileAStreamIsOpen(t *testing.T) {
	for _, path := range []string{"/v1/events", "/v1/jobs/site-1.1/logs?follow=true", "/events"} {
		h := newHolder(t, Config{})
		other, err := h.do("GET", "/v1/events", "", nil, bearer(h.guarded.token)...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.do("GET", path, "", nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %v", path, res, err)
		}
		h.revoke()
		if _, err = io.Copy(io.Discard, res.Body); limitReached(err) {
			t.Errorf("%s goes on: %v", path, err)
		}
		awaitWaiters(t, h.Server, 1)
		if n, err := other.Body.Read(make([]byte, 10)); n == 0 {
			t.Errorf("%s: another token's stream has ended: %v", path, err)
		}
		if res, err = h.do("GET", path, "", nil); err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s, again: %v %v", path, res, err)
		}
	}
}

// limitReached reports whether a test's bound has ended a request, and not the server.
func limitReached(err error) bool {
	return errors.Is(err, context.DeadlineExceeded)
}

// Reads that wait are answered that the token is gone, and show nothing more.
func TestRevokedWhileAReadWaits(t *testing.T) {
	for _, path := range []string{"/v1/jobs?index=1000", "/v1/sites?index=1000", "/v1/wait?job=site-1.1", "/v1/jobs/site-1.1?index=1000"} {
		h := newHolder(t, Config{})
		answers := make(chan *http.Response, 1)
		go func() {
			res, err := h.do("GET", path, "", nil)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			answers <- res
		}()
		awaitWaiters(t, h.Server, 1)
		h.revoke()
		res := <-answers
		if res == nil {
			continue
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusUnauthorized || !strings.HasSuffix(typeOf(t, text), ":unauthenticated") {
			t.Errorf("%s: %s %s %v", path, res.Status, text, err)
		}
	}
}

func TestRevokedWhileTheArchiveIsRead(t *testing.T) {
	f := &patientArchive{begun: make(chan struct{})}
	h := newHolder(t, Config{Archive: f})
	cut := make(chan error, 1)
	go func() {
		res, err := h.do("GET", "/v1/archive", "", nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		cut <- err
	}()
	<-f.begun
	h.revoke()
	if err := <-cut; err == nil || limitReached(err) {
		t.Errorf("the export is whole, or goes on: %v", err)
	}
}

// A submission of many lines that is under way takes no more of them.
func TestRevokedWhileLinesAreSubmitted(t *testing.T) {
	h := newHolder(t, Config{})
	in, out := io.Pipe()
	go func() { _, _ = io.WriteString(out, `{"command":["a"]}`+"\n") }()
	res, err := h.do("POST", "/v1/jobs", nd, in)
	if err != nil {
		t.Fatal(err)
	}
	results := bufio.NewScanner(res.Body)
	if !results.Scan() || !strings.Contains(results.Text(), `"id":"site-1.2"`) {
		t.Fatalf("%s %v", results.Text(), results.Err())
	}
	h.revoke() // nothing more is sent: the server does not wait for it
	if !results.Scan() || !strings.Contains(results.Text(), ":unauthenticated") {
		t.Errorf("%s %v", results.Text(), results.Err())
	}
	if results.Scan() || limitReached(results.Err()) {
		t.Errorf("it goes on: %s %v", results.Text(), results.Err())
	}
	_ = out.Close()
	if w := h.as(h.guarded.token, "GET", "/v1/jobs/site-1.3", ""); w.Code != http.StatusNotFound {
		t.Errorf("a job of nobody: %d", w.Code)
	}
}

// A body that comes slowly is no way to have something done later.
func TestRevokedWhileABodyComes(t *testing.T) {
	h := newHolder(t, Config{})
	conn, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", h.token)
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err = answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	h.revoke()
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized || !res.Close {
		t.Errorf("%s, close %t", res.Status, res.Close)
	}
}

// Whoever revokes his own token is told that it is done.
func TestRevokeOneself(t *testing.T) {
	g := newGuarded(t)
	if w := g.as(g.token, "DELETE", "/v1/tokens/"+g.store.List()[0].ID, ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	g.refused("afterwards", g.as(g.token, "GET", "/v1/tokens", ""), http.StatusUnauthorized, "unauthenticated")
}

// What another site's broker answers to a token ends with it, too.
func TestRevokedWhileAnotherBrokerAnswers(t *testing.T) {
	executor := newFake("site-2")
	executor.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) { return make(patientLog), nil }
	there := serve(t, executor, Config{})
	f := newFake("site-1")
	f.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "executor"}
	g := newGuarded(t)
	g.Server = serve(t, f, Config{Access: g.store})
	h := &holder{g, g.create(access.Operator, time.Time{}), g.store.List()[1].ID}
	res, err := h.do("GET", "/v1/jobs/site-1.1/logs?follow=true", "", nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", res, err)
	}
	h.revoke()
	if _, err = io.Copy(io.Discard, res.Body); limitReached(err) {
		t.Errorf("it goes on: %v", err)
	}
}
