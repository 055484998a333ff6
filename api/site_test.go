package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/node"
)

// TestLeaveAsks: what the body says reaches the broker, its absence is no wish.
func TestLeaveAsks(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	for _, body := range []string{"", "{}", `{"now":true}`, `{"forget":true,"now":false}`} {
		if w := ask(s, "POST", "/v1/leave", js, body); w.Code != http.StatusAccepted {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	}
	want := []string{"now false forget false", "now false forget false", "now true forget false", "now false forget true"}
	if !slices.Equal(f.left, want) {
		t.Errorf("asked %q, want %q", f.left, want)
	}
}

// stuckBroker's loop does not answer.
type stuckBroker struct{ *fakeBroker }

func (stuckBroker) Draining(ctx context.Context) (on, own bool) {
	<-ctx.Done()
	return false, false
}

func (stuckBroker) Drain(context.Context, bool) error {
	return fmt.Errorf("drain: %w", node.ErrStopping)
}

// TestStatusOfStuckBroker: the status is there to find out what is wrong.
func TestStatusOfStuckBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(stuckBroker{newFake("site-1")})
		if w := ask(s, "GET", "/v1/status", "", ""); w.Code != http.StatusOK {
			t.Errorf("status: %d %s", w.Code, w.Body)
		}
		if w := ask(s, "POST", "/v1/drain", "", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("drain: %d %s", w.Code, w.Body)
		}
	})
}

// TestForeignPages: a page of another origin cannot use the reader's browser
// to change anything; programs, and the API's own pages, can.
func TestForeignPages(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	for _, c := range []struct {
		method, path, header, value string
		code                        int
	}{
		{"POST", "/v1/leave", "Sec-Fetch-Site", "cross-site", 403},
		{"POST", "/v1/jobs", "Sec-Fetch-Site", "same-site", 403},
		{"DELETE", "/v1/jobs/site-1.1", "Origin", "https://elsewhere.example", 403},
		{"PUT", "/v1/policy", "Origin", "null", 403},
		{"POST", "/v1/leave", "Sec-Fetch-Site", "same-origin", 202},
		{"POST", "/v1/leave", "Origin", "http://localhost", 202}, // the request's own host
		{"GET", "/v1/sites", "Sec-Fetch-Site", "cross-site", 200},
	} {
		w := ask(s, c.method, c.path, "", "", c.header, c.value)
		if w.Code != c.code {
			t.Errorf("%s %s of %s: %d %s", c.method, c.path, c.value, w.Code, w.Body)
		}
		if w.Code == 403 && (!strings.Contains(w.Body.String(), "foreign-page") || w.Header().Get("X-CloudShare-Index") == "") {
			t.Errorf("%s %s: %v %s", c.method, c.path, w.Header(), w.Body)
		}
	}
	if len(f.left) != 2 {
		t.Errorf("the broker was told to leave %d times, want 2", len(f.left))
	}
}

// Found by review: HEAD, with which probes and proxies look, was 405 everywhere.
func TestHead(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["true"]}`)
	for path, want := range map[string]int{
		"/": 200, "/livez": 200, "/readyz": 200, "/metrics": 200, "/v1/jobs": 200, "/v1/jobs/site-1.1": 200, "/v1/jobs/site-1.9": 404, "/docs": 200,
		"/openapi.json": 200, "/assets/app.css": 200, "/v1/events": 405, "/v1/jobs/site-1.1/logs": 405, "/live": 405, "/v1/drain": 405, "/nowhere": 404,
	} {
		res := request1(t, limit(t), "HEAD", "http://"+s.Addr()+path, "", nil)
		if body, err := io.ReadAll(res.Body); res.StatusCode != want || len(body) > 0 || err != nil {
			t.Errorf("HEAD %s: %s %q %v, want %d", path, res.Status, body, err, want)
		}
	}
}
