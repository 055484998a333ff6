package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// openStream opens a stream of a session's page, and returns once it is there.
func openStream(t *testing.T, url string, cookies []*http.Cookie) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Body.Close() })
	lines := bufio.NewScanner(w.Body)
	if w.StatusCode != http.StatusOK || !lines.Scan() {
		t.Fatalf("%s: %s", url, w.Status)
	}
	return lines
}

// streamEnds reports whether a stream ends.
func streamEnds(lines *bufio.Scanner) bool {
	over := make(chan struct{})
	go func() {
		for lines.Scan() {
		}
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

// Whoever logs out has no stream left of that session; other sessions of the token have theirs.
func TestLogOutEndsStreams(t *testing.T) {
	g := newGuarded(t)
	srv := httptest.NewServer(g)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	text := g.create(access.User, time.Time{})
	var sessions [2][]*http.Cookie
	for i := range sessions {
		w := g.browse("POST", "/login", url.Values{"token": {text}}.Encode(), nil)
		for _, c := range w.Result().Cookies() {
			c.Name = "cloudshare-" + at.Port() // as a browser has it that asks at this port
			sessions[i] = append(sessions[i], c)
		}
	}
	var first []*bufio.Scanner
	for _, path := range []string{"/live", "/contact", "/events/stream", "/v1/events"} {
		first = append(first, openStream(t, srv.URL+path, sessions[0]))
	}
	second := openStream(t, srv.URL+"/contact", sessions[1])
	c := *sessions[0][0]
	c.Name = "cloudshare-7700"
	cookies := []*http.Cookie{&c}
	if w := g.browse("POST", "/logout", "key="+g.keyOf(cookies), cookies); w.Code != http.StatusSeeOther {
		t.Fatalf("log out: %d %s", w.Code, w.Body)
	}
	for i, lines := range first {
		if !streamEnds(lines) {
			t.Errorf("stream %d goes on", i)
		}
	}
	for range 2 {
		if !second.Scan() {
			t.Error("another session's stream has ended")
		}
	}
}
