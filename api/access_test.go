package api

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
)

// guarded is a server with tokens.
type guarded struct {
	*Server
	t     *testing.T
	store *access.Store
	fake  *fakeBroker
	token string // the operator's
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	store, err := access.Open(filepath.Join(t.TempDir(), access.TokensFile))
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, store: store, fake: newFake("site-1")}
	g.token = g.create(access.Operator, time.Time{})
	g.Server = New(Config{Access: store}, g.fake, prometheus.NewRegistry(), zerolog.Nop())
	return g
}

func (g *guarded) create(role access.Role, until time.Time) string {
	g.t.Helper()
	text, _, err := g.store.Create(access.Token{Name: "test", User: "alice", Role: role, Expires: until})
	if err != nil {
		g.t.Fatal(err)
	}
	return text
}

// expired returns a token whose time is over. One that is over before it is made is refused: then a longer life
// follows.
func (g *guarded) expired() string {
	g.t.Helper()
	for life := 10 * time.Millisecond; ; life *= 4 {
		end := time.Now().Add(life)
		text, _, err := g.store.Create(access.Token{Name: "test", User: "alice", Role: access.Operator, Expires: end})
		if err == nil {
			<-time.After(time.Until(end))
			return text
		}
		if life > time.Minute {
			g.t.Fatal(err)
		}
	}
}

// refused checks that an answer is a problem of this status and name, and shows no part of a token.
func (g *guarded) refused(what string, w *httptest.ResponseRecorder, status int, name string) {
	g.t.Helper()
	if w.Code != status || !strings.HasSuffix(typeOf(g.t, w.Body.Bytes()), ":"+name) {
		g.t.Errorf("%s: %d %s, want %d %s", what, w.Code, w.Body, status, name)
	}
	if secret := strings.Split(g.token, "_")[2]; strings.Contains(w.Body.String(), secret[:8]) {
		g.t.Errorf("%s: the answer shows the token", what)
	}
}

// Whoever has no token learns nothing, wherever he asks, but what is open to everybody.
func TestEveryPathNeedsAToken(t *testing.T) {
	g := newGuarded(t)
	type route struct{ method, path string }
	routes := []route{{"GET", "/nothing"}, {"BREW", "/v1/jobs"}, {"GET", "/assets/a/b"}, {"GET", "/livez/"}, {"POST", "/logout"}}
	for path, item := range g.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete, "PATCH": item.Patch, "HEAD": item.Head,
			"OPTIONS": item.Options,
		} {
			if op != nil {
				routes = append(routes, route{method, strings.ReplaceAll(path, "{id}", "site-1.1")})
			}
		}
	}
	for _, r := range pageRoutes(g.Server) {
		routes = append(routes, route{r[0], strings.NewReplacer("{id}", "site-1.1", "{name}", "app.css").Replace(r[1])})
	}
	open := map[string]bool{"/livez": true, "/readyz": true, "/openapi.json": true, "/docs": true, "/login": true, "/assets/app.css": true}
	for _, r := range routes {
		w := ask(g.Server, r.method, r.path, "", "")
		if open[r.path] {
			if w.Code == http.StatusUnauthorized {
				t.Errorf("%s %s is not open", r.method, r.path)
			}
			continue
		}
		g.refused(r.method+" "+r.path, w, http.StatusUnauthorized, "unauthenticated")
		if w.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(w.Body.String(), "--token-file") {
			t.Errorf("%s %s: %v %s", r.method, r.path, w.Header(), w.Body)
		}
	}
}

func pageRoutes(s *Server) (out [][2]string) {
	for _, r := range s.pages.web.Routes() {
		out = append(out, [2]string{r.Method, r.Path})
	}
	return out
}

func bearer(text string) []string { return []string{"Authorization", "Bearer " + text} }

func TestToken(t *testing.T) {
	g := newGuarded(t)
	for _, header := range []string{"Bearer " + g.token, "bearer  " + g.token, "Bearer " + strings.ToUpper(g.token)} {
		if w := ask(g.Server, "GET", "/v1/status", "", "", "Authorization", header); w.Code != http.StatusOK {
			t.Errorf("%.8s: %d %s", header, w.Code, w.Body)
		}
	}
	mistyped := []byte(g.token)
	mistyped[30] ^= 1 // never what it was; another letter or digit than any base32 text has may come of it
	foreign, revoked, expired := newGuarded(t).token, g.create(access.Operator, time.Time{}), g.expired()
	if err := g.store.Revoke(g.store.List()[1].ID); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{
		"another site's": "Bearer " + foreign,
		"revoked":        "Bearer " + revoked,
		"expired":        "Bearer " + expired,
		"mistyped":       "Bearer " + string(mistyped),
		"none":           "Bearer ",
		"password":       "Bearer hunter2",
		"as a user":      "Basic " + g.token,
		"bare":           g.token,
	} {
		g.refused(name, ask(g.Server, "GET", "/v1/status", "", "", "Authorization", header), http.StatusUnauthorized, "unauthenticated")
	}
	for name, text := range map[string]string{"expired": expired, "revoked": revoked, "another site's": foreign} {
		w := ask(g.Server, "GET", "/v1/status", "", "", bearer(text)...)
		if said := w.Body.String(); !strings.Contains(said, "ask the site's operator for a new one") || strings.Contains(said, "file `token`") ||
			w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("a user whose token is %s is told: %s", name, said)
		}
	}
	g.refused("in the query", ask(g.Server, "GET", "/v1/status?token="+g.token, "", ""), http.StatusUnauthorized, "unauthenticated")
}

// Each role may do what it is for, and what nobody thought of takes the operator.
func TestRoles(t *testing.T) {
	g := newGuarded(t)
	readOnly, user := g.create(access.ReadOnly, time.Time{}), g.create(access.User, time.Time{})
	for _, c := range []struct {
		method, path       string
		byReadOnly, byUser bool
	}{
		{"GET", "/v1/jobs", true, true},
		{"HEAD", "/v1/sites", true, true},
		{"GET", "/metrics", true, true},
		{"POST", "/v1/jobs", false, true},
		{"DELETE", "/v1/jobs/site-1.1", false, true},
		{"POST", "/v1/cancel", false, true},
		{"POST", "/v1/jobs/site-1.1/hold", false, true},
		{"POST", "/v1/priority", false, true},
		{"POST", "/v1/jobs/site-1.1/priority", false, true},
		{"POST", "/v1/jobs/site-1.1/release", false, true},
		{"PUT", "/v1/blobs/" + strings.Repeat("0", 64), false, true},
		{"POST", "/v1/blobs/missing", false, true},
		{"POST", "/v1/uploads", false, true},
		{"PATCH", "/v1/uploads/x", false, true},
		{"DELETE", "/v1/uploads/x", false, true},
		{"POST", "/v1/imports", false, true},
		{"GET", "/v1/blobs/" + strings.Repeat("0", 64), true, true},
		{"PUT", "/v1/policy", false, false},
		{"POST", "/v1/drain", false, false},
		{"POST", "/v1/leave", false, false},
		{"POST", "/v1/whatever", false, false},
	} {
		for token, may := range map[string]bool{readOnly: c.byReadOnly, user: c.byUser, g.token: true} {
			w := ask(g.Server, c.method, c.path, js, `{}`, bearer(token)...)
			if !may {
				g.refused(c.method+" "+c.path, w, http.StatusForbidden, "forbidden")
			} else if w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized {
				t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
			}
		}
	}
}

// Whoever tries tokens is slowed down, and nobody else is.
func TestTooManyWrongTokens(t *testing.T) {
	g := newGuarded(t)
	foreign := newGuarded(t).token
	from := func(addr, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "http://127.0.0.1:7700/v1/status", nil)
		r.RemoteAddr = addr
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	var last *httptest.ResponseRecorder
	for range 30 { // two seconds begin at most
		last = from("192.0.2.1:1000", foreign)
	}
	g.refused("the 30th", last, http.StatusTooManyRequests, "too-many-attempts")
	if last.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", last.Header())
	}
	if w := from("192.0.2.1:1001", g.token); w.Code != http.StatusOK {
		t.Errorf("the right token: %d", w.Code)
	}
	g.refused("of another address", from("192.0.2.2:1000", foreign), http.StatusUnauthorized, "unauthenticated")
}

// Another site's broker is proven by its connection, and needs no token; a client cannot pass for one.
func TestOtherBrokersNeedNoToken(t *testing.T) {
	g := newGuarded(t)
	if w := askAsPeer(g.Server, "GET", "/v1/jobs/site-1.1", wire.HeaderMeans, "site-1/"); w.Code == http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := ask(g.Server, "GET", "/v1/jobs/site-1.1", "", "", wire.HeaderMeans, "site-1/", wire.HeaderHops, "1")
	g.refused("a client with their headers", w, http.StatusUnauthorized, "unauthenticated")
}
