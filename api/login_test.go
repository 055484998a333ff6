package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// browse asks as a browser does that shows pages.
func (g *guarded) browse(
	method, target, body string, cookies []*http.Cookie, headers ...string,
) *httptest.ResponseRecorder {
	g.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:7700"
	r.Header.Set("Accept", "text/html,*/*")
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://127.0.0.1:7700")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func (g *guarded) logIn(token, next string) *httptest.ResponseRecorder {
	g.t.Helper()
	return g.browse("POST", "/login", url.Values{"token": {token}, "next": {next}}.Encode(), nil)
}

func TestLogin(t *testing.T) {
	g := newGuarded(t)
	w := g.browse("GET", "/jobs?q=a+b", "", nil)
	if at := w.Header().Get("Location"); w.Code != http.StatusSeeOther || at != "/login?next=%2Fjobs%3Fq%3Da%2Bb" {
		t.Fatalf("without a session: %d %q", w.Code, at)
	}
	w = g.browse("GET", w.Header().Get("Location"), "", nil)
	if page := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(page, `value="/jobs?q=a&#43;b"`) ||
		strings.Contains(page, "sse-connect") {
		t.Fatalf("the login page: %d %s", w.Code, page)
	}
	w = g.logIn(" "+g.token+"\n", "/jobs?q=a+b")
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/jobs?q=a+b" || len(cookies) != 1 {
		t.Fatalf("log in: %d %v", w.Code, w.Header())
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 ||
		len(c.Value) < 26 {
		t.Errorf("cookie %+v", c)
	}
	for _, path := range []string{"/", "/jobs", "/timeline", "/metrics", "/v1/status"} {
		if w = g.browse("GET", path, "", cookies); w.Code != http.StatusOK {
			t.Errorf("%s with a session: %d", path, w.Code)
		}
	}
	if w = g.browse("GET", "/ga4gh/tes/v1/service-info", "", cookies); w.Code != http.StatusForbidden {
		t.Errorf("an engine's service with a session: %d", w.Code)
	}
	if !strings.Contains(g.browse("GET", "/", "", cookies).Body.String(), `action="/logout"`) {
		t.Error("nothing to log out by")
	}
	key := "key=" + g.keyOf(cookies)
	if w = g.browse("POST", "/logout", key, cookies); w.Code != http.StatusSeeOther || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("log out: %d %v", w.Code, w.Header())
	}
	if w = g.browse("GET", "/", "", cookies); w.Code != http.StatusSeeOther {
		t.Errorf("after it: %d", w.Code)
	}
}

// A session changes things from the broker's own pages alone.
func TestSessionsAndForeignPages(t *testing.T) {
	g := newGuarded(t)
	cookies := g.logIn(g.token, "/").Result().Cookies()
	ask(g.Server, "POST", "/v1/jobs", js, `{"command":["true"]}`, bearer(g.token)...)
	const cancel = "/jobs/site-1.1/cancel"
	for name, headers := range map[string][]string{
		"another host's page":           {"Origin", "http://evil.example"},
		"a page on another port":        {"Origin", "http://127.0.0.1:9999"},
		"another site, as browsers say": {"Sec-Fetch-Site", "cross-site"},
		"another port, as browsers say": {"Sec-Fetch-Site", "same-site"},
		"who does not say":              {"Origin", ""},
	} {
		if w := g.browse("POST", cancel, "", cookies, headers...); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	key := "key=" + g.keyOf(cookies)
	if w := g.browse("POST", cancel, key, cookies, "Sec-Fetch-Site", "same-origin"); w.Code >= 400 {
		t.Errorf("an own page: %d %s", w.Code, w.Body)
	}
	if w := g.browse("POST", cancel, "", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("without a session: %d", w.Code)
	}
	if w := g.browse("GET", "/", "", cookies, "Accept", "*/*"); w.Code != http.StatusOK {
		t.Errorf("a script of a page: %d", w.Code)
	}
}

// Found in a design review: after a login one must not land at another host.
func TestNextIsLocal(t *testing.T) {
	g := newGuarded(t)
	for next, want := range map[string]string{
		"/jobs/site-1.1?a=b": "/jobs/site-1.1?a=b", "/": "/", "": "/", "jobs": "/", "//evil.example": "/", "/\\evil.example": "/",
		"http://evil.example/": "/", "/\t/evil.example": "/", "\\\\evil.example": "/", "javascript:alert(1)": "/", "/login?next=/": "/",
		"/%2f/evil.example": "/%2f/evil.example",
	} {
		if got := g.logIn(g.token, next).Header().Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func TestWrongLogin(t *testing.T) {
	g := newGuarded(t)
	w := g.logIn(g.token[:20], "/jobs")
	page := w.Body.String()
	if w.Code != http.StatusUnauthorized || !strings.Contains(page, "mistyped") || !strings.Contains(page, `value="/jobs"`) ||
		len(w.Result().Cookies()) != 0 || strings.Contains(page, g.token[13:20]) {
		t.Errorf("%d %s", w.Code, page)
	}
	if w = g.browse("POST", "/login", strings.Repeat("a", 20<<10), nil); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long form: %d", w.Code)
	}
	if w = g.browse("POST", "/login", "token=a", nil, "Origin", "http://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("from another page: %d", w.Code)
	}
}

// A session ends with the token that opened it.
func TestSessionOfARevokedToken(t *testing.T) {
	g := newGuarded(t)
	cookies := g.logIn(g.token, "/").Result().Cookies()
	if err := g.store.Revoke(g.store.List()[0].ID); err != nil {
		t.Fatal(err)
	}
	if w := g.browse("GET", "/jobs", "", cookies); w.Code != http.StatusSeeOther {
		t.Errorf("%d", w.Code)
	}
	w := g.browse("GET", "/jobs", "", cookies, "Accept", "*/*", "HX-Request", "true", "HX-Current-URL", "http://127.0.0.1:7700/jobs?q=x")
	if to := w.Header().Get("HX-Redirect"); w.Code != http.StatusUnauthorized || to != "/login?next=%2Fjobs%3Fq%3Dx" {
		t.Errorf("a script of a page: %d %q", w.Code, to)
	}
}
