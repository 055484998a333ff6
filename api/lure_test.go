package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// lure is a broker of site-2 that keeps what it is asked, and answers as it likes.
func lure(t *testing.T, answer func(w http.ResponseWriter)) (at *node.ElsewhereError, asked chan *http.Request) {
	t.Helper()
	asked = make(chan *http.Request, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set(wire.HeaderSite, "site-2")
		answer(w)
	}))
	t.Cleanup(s.Close)
	return &node.ElsewhereError{Site: "site-2", Peer: s.Listener.Addr().String(), Role: "owner"}, asked
}

// TestProxyStripsCredentials: what a user tells this broker about itself does not leave it, whichever way another one
// is asked. What brokers say to each other a client cannot say.
func TestProxyStripsCredentials(t *testing.T) {
	f := newFake("site-1")
	at, asked := lure(t, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") })
	f.elseErr = at
	s := serve(t, f, Config{Federation: "fed"})
	secret := []string{
		"Authorization", "Bearer cst_secret", "Cookie", "session=secret", "Proxy-Authorization", "Basic secret",
		"X-Forwarded-For", "10.0.0.secret", "Forwarded", "for=secret", "Referer", "http://secret/", "Origin", "http://localhost",
		"X-Api-Key", "secret", "Sec-Fetch-Site", "same-origin", "X-Real-Ip", "secret", "Upgrade", "secret", "Connection", "Upgrade",
		wire.HeaderVia, "secret", wire.HeaderHops, "1", wire.HeaderMeans, "secret/x", wire.HeaderSite, "secret", wire.HeaderHere, "true",
		"Idempotency-Key", "mine", "Accept", "application/json",
	}
	for _, target := range []string{
		"GET /v1/jobs/site-2.1", "GET /v1/jobs/site-2.1/tasks", "GET /v1/jobs/site-2.1/why", "GET /v1/jobs/site-2.1/graph",
		"GET /v1/wait?job=site-2.1&wait=1s", "GET /jobs/site-2.1",
	} {
		method, path, _ := strings.Cut(target, " ")
		ask(s, method, path, "", "", secret...)
		r := <-asked
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "secret") {
				t.Errorf("%s: %s: %s leaves the broker", target, name, values)
			}
		}
		for _, name := range []string{"Origin", "Sec-Fetch-Site", "Upgrade", wire.HeaderHere, wire.HeaderSite} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s: %s is passed on", target, name)
			}
		}
		if r.Host != "site-2" || r.Header.Get(wire.HeaderHops) != "1" || r.Header.Get(wire.HeaderVia) != "site-1" ||
			r.Header.Get(wire.HeaderMeans) != "site-2/fed" {
			t.Errorf("%s: %s %v", target, r.Host, r.Header)
		}
		if strings.HasPrefix(path, "/v1/jobs/site-2.1") && strings.HasSuffix(path, "1") && r.Header.Get("Idempotency-Key") != "mine" {
			t.Errorf("%s: no Idempotency-Key", target)
		}
	}
}

// TestProxyAllowsNoPages: what another broker answers is data, and no page, cookie or way elsewhere, which a browser
// would take for this broker's own.
func TestProxyAllowsNoPages(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	for kind, want := range map[string]string{
		"text/html": "application/octet-stream", "Text/HTML; charset=utf-7": "application/octet-stream",
		"image/svg+xml": "application/octet-stream", "nonsense/;": "application/octet-stream", "": "application/octet-stream",
		"text/javascript": "application/octet-stream", "application/xhtml+xml": "application/octet-stream",
		"text/plain; charset=utf-7":       "text/plain; charset=utf-8",
		"application/json; profile=x":     "application/json",
		"application/problem+json":        "application/problem+json",
		"application/x-ndjson":            "application/x-ndjson",
		"text/event-stream":               "text/event-stream; charset=utf-8",
		"application/octet-stream; x=\"y": "application/octet-stream",
	} {
		f.elseErr, _ = lure(t, func(w http.ResponseWriter) {
			h := w.Header()
			h["Content-Type"] = []string{kind}
			for _, name := range []string{"Set-Cookie", "Location", "Refresh", "Link", "Clear-Site-Data", "Access-Control-Allow-Origin", "Alt-Svc", "Www-Authenticate"} {
				h.Set(name, "lure")
			}
			h.Set("Trailer", "X-Lure")
			h.Set("Retry-After", "3")
			_, _ = io.WriteString(w, "<script>alert(1)</script>")
			h.Set("X-Lure", "lure")
		})
		res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-2.1", "", nil)
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), "alert") || res.Header.Get("Content-Type") != want ||
			res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Retry-After") != "3" {
			t.Errorf("%q: %s %s, %v", kind, body, res.Header, err)
		}
		if all := fmt.Sprint(res.Header, res.Trailer); strings.Contains(all, "lure") {
			t.Errorf("%q: %s", kind, all)
		}
	}
	for _, status := range []int{301, 303, 307} {
		f.elseErr, _ = lure(t, func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://lure/")
			w.WriteHeader(status)
		})
		if w := ask(s, "GET", "/v1/jobs/site-2.1", "", ""); w.Code != 503 || w.Header().Get("Location") != "" {
			t.Errorf("%d: %d %v", status, w.Code, w.Header())
		}
	}
}

// raw is a broker that writes what it likes to the wire.
func raw(t *testing.T, says string) *node.ElsewhereError {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, says)
			_ = conn.Close()
		}
	}()
	return &node.ElsewhereError{Site: "site-2", Peer: l.Addr().String(), Role: "owner"}
}

// TestProxyTakesNothingOver: an answer before the answer, and a change of protocol, do not reach the client.
func TestProxyTakesNothingOver(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	const good = "HTTP/1.1 200 OK\r\nX-CloudShare-Site: site-2\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	for name, says := range map[string]string{
		"early hints": "HTTP/1.1 103 Early Hints\r\nLink: </lure>; rel=preload\r\nSet-Cookie: lure=1\r\n\r\n" + good,
		"a switch":    "HTTP/1.1 101 Switching Protocols\r\nX-CloudShare-Site: site-2\r\nConnection: Upgrade\r\n\r\n<html>lure",
	} {
		f.elseErr = raw(t, says)
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET /v1/jobs/site-2.1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(conn)
		if _ = conn.Close(); err != nil || strings.Contains(string(got), "lure") || !strings.HasPrefix(string(got), "HTTP/1.1 ") {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

// TestPeersAskOnlySome: another broker gets answers to what brokers ask each other, and to nothing else.
func TestPeersAskOnlySome(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	for target, want := range map[string]int{
		"GET /v1/jobs/site-1.1": 200, "HEAD /v1/jobs/site-1.1": 200, "GET /v1/jobs/site-1.1/tasks": 200,
		"GET /v1/jobs/site-1.1/logs": 200, "GET /v1/contact": 200, "GET /v1/wait?job=site-1.1&wait=1ms": 200,
		"DELETE /v1/jobs/site-1.1": 403, "POST /v1/jobs/site-1.1/rerun": 403, "POST /v1/cancel?job=site-1.1": 403,

		"POST /v1/jobs": 403, "GET /v1/jobs": 403, "POST /v1/drain": 403, "POST /v1/leave": 403, "PUT /v1/policy": 403,
		"GET /v1/events": 403, "GET /metrics": 403, "GET /": 403, "GET /jobs/site-1.1": 403, "POST /jobs/site-1.1/cancel": 403,
		"GET /docs": 403, "GET /v1/status": 403, "GET /v1/jobs/x%2Fy": 403, "GET //v1/jobs/site-1.1": 403,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := askAsPeer(s, method, path)
		if w.Code != want || w.Header().Get(wire.HeaderSite) != "site-1" {
			t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
}
