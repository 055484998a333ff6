package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// answering is a broker that gives one answer and keeps the request.
func answering(t *testing.T, status int, body string) (*Client, *http.Request, *[]byte) {
	t.Helper()
	var got http.Request
	var sent []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = *r
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set(wire.HeaderReplayed, "true")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := New(srv.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &got, &sent
}

// TestRequests: each method asks what the API documents.
func TestRequests(t *testing.T) {
	ctx := context.Background()
	for want, call := range map[string]func(*Client) error{
		"GET /v1/jobs/site-1.2":     func(c *Client) error { _, err := c.Job(ctx, "site-1.2"); return err },
		"GET /v1/jobs/..%2Fpolicy":  func(c *Client) error { _, err := c.Job(ctx, "../policy"); return err },
		"DELETE /v1/jobs/site-1.2":  func(c *Client) error { _, err := c.Cancel(ctx, "site-1.2"); return err },
		"GET /v1/sites":             func(c *Client) error { _, err := c.Sites(ctx); return err },
		"GET /v1/queue":             func(c *Client) error { _, err := c.Queue(ctx); return err },
		"GET /v1/quota?all=true":    func(c *Client) error { _, err := c.Quotas(ctx, true); return err },
		"GET /v1/ledger":            func(c *Client) error { _, err := c.Ledger(ctx); return err },
		"GET /v1/plausibility":      func(c *Client) error { _, err := c.Plausibility(ctx); return err },
		"GET /v1/policy":            func(c *Client) error { _, err := c.Policy(ctx); return err },
		"GET /readyz":               func(c *Client) error { return c.Ready(ctx) },
		"GET /v1/status?hash=false": func(c *Client) error { _, err := c.Status(ctx, false); return err },
		"GET /v1/jobs?label=a%3Db&label=c%3D&limit=5&state=queued": func(c *Client) error {
			_, err := c.Jobs(ctx, JobQuery{State: "queued", Labels: []string{"a=b", "c="}, Limit: 5})
			return err
		},
		"GET /v1/jobs/site-1.2/tasks?cursor=7&limit=3": func(c *Client) error { _, err := c.Tasks(ctx, "site-1.2", 3, "7"); return err },
		"POST /v1/drain":  func(c *Client) error { _, err := c.Drain(ctx, true); return err },
		"POST /v1/resume": func(c *Client) error { _, err := c.Resume(ctx); return err },
		"POST /v1/leave":  func(c *Client) error { _, err := c.Leave(ctx, true, false); return err },
		"PUT /v1/policy": func(c *Client) error {
			_, err := c.SetPolicy(ctx, map[string]any{"policy": "FAIRSHARE"})
			return err
		},
		"GET /v1/jobs/site-1.2/logs?attempt=2&follow=true&stream=stderr&task=1": func(c *Client) error {
			body, err := c.Logs(ctx, "site-1.2", LogQuery{Task: 1, Attempt: 2, Stream: "stderr", Follow: true})
			if err == nil {
				err = body.Close()
			}
			return err
		},
	} {
		c, got, _ := answering(t, 200, "{}")
		if err := call(c); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if have := got.Method + " " + got.URL.RequestURI(); have != want {
			t.Errorf("asked %s, want %s", have, want)
		}
	}
}

// TestSwitches: what is asked of a site is in the body.
func TestSwitches(t *testing.T) {
	ctx := context.Background()
	c, _, sent := answering(t, 200, `{"draining":true,"own":true,"leaving":true}`)
	if d, err := c.Drain(ctx, true); err != nil || !d.Draining || !d.Own || string(*sent) != `{"own":true}` {
		t.Errorf("drain: %+v %v, sent %s", d, err, *sent)
	}
	if l, err := c.Leave(ctx, true, false); err != nil || !l.Leaving || string(*sent) != `{"now":true,"forget":false}` {
		t.Errorf("leave: %+v %v, sent %s", l, err, *sent)
	}
	if _, err := c.Resume(ctx); err != nil || string(*sent) != `{}` {
		t.Errorf("resume: %v, sent %s", err, *sent)
	}
}

func TestSubmit(t *testing.T) {
	c, got, sent := answering(t, 202, `{"id":"site-1.1","state":"queued","durability":"site"}`)
	a, err := c.Submit(context.Background(), []byte(`{"command":["x"]}`), SubmitOptions{Key: "k", Strict: true})
	if err != nil || a.ID != "site-1.1" || a.Durability != "site" || !a.Replayed {
		t.Errorf("%+v %v", a, err)
	}
	if got.Header.Get("Idempotency-Key") != "k" || got.URL.RawQuery != "strict=true" || string(*sent) != `{"command":["x"]}` {
		t.Errorf("sent %v %s %s", got.Header, got.URL, *sent)
	}
}

func TestSubmitMany(t *testing.T) {
	c, got, _ := answering(t, 202, `{"id":"site-1.1","state":"queued"}`+"\n"+`{"type":"urn:cloudshare:problem:malformed","title":"no","status":400,"line":2}`+"\n")
	var out []string
	err := c.SubmitMany(context.Background(), strings.NewReader("{}\n{\n"), SubmitOptions{}, func(r Result) error {
		if r.Problem != nil {
			out = append(out, r.Problem.Title)
		} else {
			out = append(out, r.Accepted.ID)
		}
		return nil
	})
	if err != nil || strings.Join(out, " ") != "site-1.1 no" || got.Header.Get("Content-Type") != wire.TypeNDJSON {
		t.Errorf("%v %v %v", out, err, got.Header)
	}
	stop := errors.New("enough")
	if err := c.SubmitMany(context.Background(), strings.NewReader("{}\n"), SubmitOptions{},
		func(Result) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of each: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	text, err := json.Marshal(Problem{Type: "urn:cloudshare:problem:not-found", Title: "Not found", Status: 404, Detail: "job x"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := answering(t, 404, string(text))
	_, err = c.Job(context.Background(), "x")
	var p *Problem
	if !errors.As(err, &p) || p.Status != 404 || p.Error() != "Not found: job x" {
		t.Errorf("a problem: %v", err)
	}
	if p.Detail = "job x: not found"; p.Error() != p.Detail {
		t.Errorf("said twice: %v", p)
	}
	for _, body := range []string{"<html>", "", `{"a":1}`} {
		c, _, _ = answering(t, 502, body)
		if _, err := c.Job(context.Background(), "x"); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%q: %v", body, err)
		}
	}
	c, _, _ = answering(t, 200, "not json")
	if _, err := c.Sites(context.Background()); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("no JSON: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err = New(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sites(context.Background()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Sites(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// By a broker's own socket the same is asked; errors name the socket.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"site":"`+r.Host+r.URL.Path+r.Header.Get("Authorization")+`"}`)
	}))
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	c, err := New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if who, err := c.Whoami(t.Context()); err != nil || who.Site != "localhost/v1/whoami" || c.Addr() != "unix://"+path {
		t.Errorf("%+v, %v, %s", who, err, c.Addr())
	}
	srv.Close()
	if _, err = c.Whoami(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), path) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, addr := range []string{"", "unix://", "ftp://x", "http://", "http://u:p@x", "http://x?y=1", "http://\x7f"} {
		if _, err := New(addr); !errors.Is(err, ErrBadAddr) {
			t.Errorf("New(%q): %v", addr, err)
		}
	}
}

// A client with a token sends it, whatever else it is set to do.
func TestWithToken(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"items":[]}`)
	}))
	defer srv.Close()
	c, err := New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	with := c.WithToken("cst_x")
	for _, c := range []*Client{c, with, with.Fresh(-1, nil), with.Watching(time.Second)} {
		if _, err := c.Sites(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"", "Bearer cst_x", "Bearer cst_x", "Bearer cst_x"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
