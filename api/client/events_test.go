package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// serving is a client of a broker that answers by f.
func serving(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	c, err := New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestEventsGoOn: after a cut connection, and a broker that is away for a while,
// the events go on after the last one.
func TestEventsGoOn(t *testing.T) {
	var calls atomic.Int32
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		from := r.URL.Query().Get("from")
		switch n := calls.Add(1); n {
		case 1:
			if from != "" || r.URL.Query()["kind"][1] != "site" {
				t.Errorf("asked %s", r.URL.RawQuery)
			}
			_, _ = io.WriteString(w, "retry: 1\nevent: hello\ndata: {\"from\":\"7.2\"}\n\n") // and no more
		case 2:
			if from != "7.2" {
				t.Errorf("connected again from %q", from)
			}
			_, _ = io.WriteString(w, "event: hello\ndata: {\"from\":\"7.2\"}\n\nid: 8.1\nevent: site.lost\ndata: {\"id\":\"8.1\",\"kind\":\"site.lost\"}\n\nid: 9.1\nevent: cut")
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:stopping","status":503}`)
		case 4:
			if from != "8.1" {
				t.Errorf("connected again from %q", from)
			}
			_, _ = io.WriteString(w, "event: site.left\r\ndata: {\"id\":\"9.1\",\r\ndata:\"kind\":\"site.left\"}\r\n\r\n")
		}
	})
	var got []string
	for e, err := range c.Events(t.Context(), EventQuery{Kinds: []string{"job", "site"}, Patience: time.Minute}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.ID+" "+e.Kind); len(got) == 2 {
			break
		}
	}
	if fmt.Sprint(got) != "[8.1 site.lost 9.1 site.left]" {
		t.Errorf("got %v", got)
	}
}

// TestEventsEnd: without patience, with a wrong answer, and when the caller stops.
func TestEventsEnd(t *testing.T) {
	for name, body := range map[string]string{
		"no events": "", "broken json": "event: task.ended\ndata: {\n\n", "no end": strings.Repeat("x", 3<<20),
		"endless data": strings.Repeat("data: "+strings.Repeat("y", 1<<10)+"\n", 3<<10), "broken hello": "event: hello\ndata: 7\n\n",
	} {
		c := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		n := 0
		for _, err := range c.Events(t.Context(), EventQuery{}) {
			if n++; !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrBadAnswer) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: yielded %d times", name, n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	for _, err := range c.Events(ctx, EventQuery{Patience: time.Hour}) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	refused := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:invalid-parameter","status":400}`)
	})
	for _, err := range refused.Events(t.Context(), EventQuery{Patience: time.Hour}) {
		var p *Problem
		if !errors.As(err, &p) {
			t.Error(err)
		}
	}
}

// TestWatching: each read goes on where the last one ended.
func TestWatching(t *testing.T) {
	var asked []string
	n := 0
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		n++
		w.Header().Set(wire.HeaderIndex, fmt.Sprint(10*n))
		w.Header().Set(wire.HeaderHome, fmt.Sprint(n))
		_, _ = io.WriteString(w, "{}")
	})
	w := c.Watching(1500 * time.Microsecond)
	for _, call := range []func() error{
		func() error { _, err := w.Sites(t.Context()); return err },
		func() error { _, err := w.Jobs(t.Context(), JobQuery{State: "queued"}); return err },
		func() error { _, err := w.Policy(t.Context()); return err },
		func() error { _, err := w.Ledger(t.Context()); return err },
		func() error { _, err := c.Ledger(t.Context()); return err },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	want := "[/v1/sites /v1/jobs?home=1&index=10&state=queued&wait=2ms /v1/policy /v1/ledger?home=2&index=20&wait=2ms /v1/ledger]"
	if fmt.Sprint(asked) != want {
		t.Errorf("asked %v\nwant %s", asked, want)
	}
}
