package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
)

// as asks with a token.
func (g *guarded) as(token, method, path, body string) *httptest.ResponseRecorder {
	g.t.Helper()
	return ask(g.Server, method, path, js, body, bearer(token)...)
}

// decoded reads an answer of a status.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (out T) {
	t.Helper()
	if w.Code != status || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s, want %d", w.Code, w.Header(), w.Body, status)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A token is made, told once, used, listed and revoked.
func TestLifeOfATokenOverTheAPI(t *testing.T) {
	g := newGuarded(t)
	made := decoded[wire.NewToken](t, g.as(g.token, "POST", "/v1/tokens",
		`{"name":"alice's laptop","user":"alice","role":"user","for":"720h"}`), http.StatusCreated)
	if made.Name != "alice's laptop" || made.User != "alice" || made.Role != "user" || made.Expires == nil ||
		made.Expires.Sub(*made.Created).Round(time.Minute) != 720*time.Hour || !strings.Contains(made.Text, made.ID) {
		t.Errorf("%+v", made.Token)
	}
	who := decoded[wire.Whoami](t, g.as(made.Text, "GET", "/v1/whoami", ""), http.StatusOK)
	if who.Site != "site-1" || who.User != "alice" || who.Role != "user" || who.Token == nil || who.Token.ID != made.ID {
		t.Errorf("%+v", who)
	}
	w := g.as(g.token, "GET", "/v1/tokens", "")
	list := decoded[wire.List[wire.Token]](t, w, http.StatusOK)
	if len(list.Items) != 2 || list.Items[1].ID != made.ID || list.Items[0].Expires != nil {
		t.Errorf("%s", w.Body)
	}
	if secret := strings.Split(made.Text, "_")[2]; strings.Contains(w.Body.String(), secret[:8]) {
		t.Error("the list shows a text")
	}
	if w = g.as(g.token, "DELETE", "/v1/tokens/"+made.ID, ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("revoke: %d %s", w.Code, w.Body)
	}
	g.refused("a revoked token", g.as(made.Text, "GET", "/v1/whoami", ""), http.StatusUnauthorized, "unauthenticated")
	g.refused("revoked twice", g.as(g.token, "DELETE", "/v1/tokens/"+made.ID, ""), http.StatusNotFound, "not-found")
}

// Whoever asks learns who he is; without tokens at all that is the operator.
func TestWhoami(t *testing.T) {
	g := newGuarded(t)
	cookies := g.logIn(g.create(access.ReadOnly, time.Time{}), "/").Result().Cookies()
	who := decoded[wire.Whoami](t, g.browse("GET", "/v1/whoami", "", cookies), http.StatusOK)
	if who.Role != "read-only" || who.User != "alice" || who.Token == nil {
		t.Errorf("by a session: %+v", who)
	}
	open := newServer(newFake("site-1"))
	who = decoded[wire.Whoami](t, ask(open, "GET", "/v1/whoami", "", ""), http.StatusOK)
	if who.Role != "operator" || who.Token != nil {
		t.Errorf("without tokens: %+v", who)
	}
	for _, method := range []string{"GET", "POST"} {
		if w := ask(open, method, "/v1/tokens", js, "{}"); w.Code != http.StatusNotFound {
			t.Errorf("%s without tokens: %d %s", method, w.Code, w.Body)
		}
	}
}

// Tokens are the operator's: others do not even see whose there are.
func TestTokensAreTheOperators(t *testing.T) {
	g := newGuarded(t)
	id := g.store.List()[0].ID
	for _, role := range []access.Role{access.ReadOnly, access.User} {
		token := g.create(role, time.Time{})
		for _, r := range [][2]string{
			{"GET", "/v1/tokens"},
			{"HEAD", "/v1/tokens"},
			{"POST", "/v1/tokens"},
			{"DELETE", "/v1/tokens/" + id},
			{"GET", "/v1/tokens/" + id},
			{"GET", "/v1/tokens/"},
		} {
			w := g.as(token, r[0], r[1], `{"name":"x","role":"operator"}`)
			g.refused(string(role)+" "+r[0]+" "+r[1], w, http.StatusForbidden, "forbidden")
		}
		for _, path := range []string{"/v1/%74okens", "/v1//tokens", "/V1/tokens"} {
			if w := g.as(token, "GET", path, ""); w.Code < 400 {
				t.Errorf("%s by %s: %d", path, role, w.Code)
			}
		}
	}
	if w := askAsPeer(g.Server, "GET", "/v1/tokens", wire.HeaderMeans, "site-1/"); w.Code != http.StatusForbidden {
		t.Errorf("another site's broker: %d %s", w.Code, w.Body)
	}
	if len(g.store.List()) != 3 {
		t.Errorf("%v", g.store.List())
	}
}

func TestRefusedTokenRequests(t *testing.T) {
	g := newGuarded(t)
	for body, want := range map[string]string{
		`{"name":"a","user":"a","role":"user","for":"1y"}`:        "422 invalid-request",
		`{"name":"a","user":"a","role":"user","for":"-1h"}`:       "422 invalid-request",
		`{"name":"a","user":"a","role":"user","for":"1ms"}`:       "422 invalid-request",
		`{"name":"a","role":"user"}`:                              "422 invalid-request",
		`{"name":"a","user":"A b","role":"user"}`:                 "422 invalid-request",
		`{"name":"a","user":"../etc","role":"user"}`:              "422 invalid-request",
		`{"name":"a","user":"a","role":"root"}`:                   "422 invalid-request",
		`{"name":"a","user":"a"}`:                                 "422 invalid-request",
		`{"user":"a","role":"user"}`:                              "422 invalid-request",
		`{"name":"a\nb","user":"a","role":"user"}`:                "422 invalid-request",
		`{"name":"a","user":"a","role":"user","id":"x"}`:          "422 invalid-request",
		`{"name":7,"user":"a","role":"user"}`:                     "422 invalid-request",
		`{"name":"a","user":null,"role":"user"}`:                  "422 invalid-request",
		`{"name":"a","user":"a","role":"user","role":"operator"}`: "400 malformed",
		`{"name":"a"`: "400 malformed",
		``:            "400 malformed",
		`{"name":"` + strings.Repeat("a", 1<<20) + `","role":"user"}`: "413 too-large",
	} {
		status, name, _ := strings.Cut(want, " ")
		w := g.as(g.token, "POST", "/v1/tokens", body)
		if got := w.Result().Status[:3]; got != status || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":"+name) {
			t.Errorf("%.60s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
	if len(g.store.List()) != 1 {
		t.Error("something was made")
	}
	g.refused("no such token", g.as(g.token, "DELETE", "/v1/tokens/aaaaaaaa", ""), http.StatusNotFound, "not-found")
}
