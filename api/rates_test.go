package api

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/access"
)

// rated is a guarded server with few requests a second.
func rated(t *testing.T, most Rates) (*guarded, *prometheus.Registry) {
	g, reg := newGuarded(t), prometheus.NewRegistry()
	g.Server = New(Config{Access: g.store, Rates: &most}, g.fake, reg, zerolog.Nop())
	return g, reg
}

// from asks for a path from an address, with a token if it is not empty.
func (g *guarded) from(addr, token, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://127.0.0.1:7700"+path, nil)
	r.RemoteAddr = addr
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// flood asks until it is refused, and returns the refusal.
func flood(t *testing.T, ask func() *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	for range 10_000 {
		if w := ask(); w.Code == http.StatusTooManyRequests {
			after, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if err != nil || after < 1 || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("the refusal has %v", w.Header())
			}
			return w
		}
	}
	t.Fatal("never refused")
	return nil
}

// TestFloodWithoutTokens: of one address only so much is answered, whatever it asks for; who brings a right token from
// there is answered, and so is what asks whether the broker is well, and another address.
func TestFloodWithoutTokens(t *testing.T) {
	g, reg := rated(t, Rates{Anonymous: 1})
	const mallory = "192.0.2.1:1000"
	for _, path := range []string{"/v1/status", "/login", "/nothing"} {
		w := flood(t, func() *httptest.ResponseRecorder { return g.from(mallory, "", path) })
		if path != "/login" { // that one is refused by a page
			g.refused(path, w, http.StatusTooManyRequests, "too-many-requests")
		}
		if !strings.Contains(w.Body.String(), "rates.anonymous") {
			t.Errorf("%s: the bound is not named: %s", path, w.Body)
		}
	}
	for _, c := range []struct{ addr, token, path string }{
		{mallory, g.token, "/v1/status"},
		{mallory, g.create(access.User, time.Time{}), "/v1/status"},
		{mallory, "", "/livez"},
		{mallory, "", "/readyz"},
		{"192.0.2.2:1000", "", "/login"},
		{"@", "", "/login"},
	} {
		if w := g.from(c.addr, c.token, c.path); w.Code != http.StatusOK {
			t.Errorf("%s from %s: %d %s", c.path, c.addr, w.Code, w.Body)
		}
	}
	if n := counted(t, reg, "cloudshare_http_over_rate_total", "anonymous"); n != 3 {
		t.Errorf("%v refusals are counted, want 3", n)
	}
}

// TestFloodByUser: one user is refused, by whichever token and address; others and the operator are not.
func TestFloodByUser(t *testing.T) {
	g, _ := rated(t, Rates{User: 1})
	tokens := []string{g.create(access.User, time.Time{}), g.create(access.ReadOnly, time.Time{})}
	bob, _, err := g.store.Create(access.Token{Name: "bob", User: "bob", Role: access.User})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	w := flood(t, func() *httptest.ResponseRecorder {
		n++
		return g.from("192.0.2."+strconv.Itoa(n%200)+":1", tokens[n%2], "/v1/status")
	})
	g.refused("alice", w, http.StatusTooManyRequests, "too-many-requests")
	if !strings.Contains(w.Body.String(), "rates.user") {
		t.Errorf("the bound is not named: %s", w.Body)
	}
	if w = g.from("192.0.2.1:1", bob, "/v1/status"); w.Code != http.StatusOK {
		t.Errorf("bob: %d %s", w.Code, w.Body)
	}
	for range 100 {
		if w = g.from("192.0.2.1:1", g.token, "/v1/status"); w.Code != http.StatusOK {
			t.Fatalf("the operator: %d %s", w.Code, w.Body)
		}
	}
}

// counted returns a counter's value by its one label.
func counted(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s", name, label)
	return 0
}

// BenchmarkAdmitted is what a small request of a user costs in the handler, with its bound and without.
func BenchmarkAdmitted(b *testing.B) {
	for name, most := range map[string]Rates{"bounded": {WrongTokens: 10, Anonymous: 1000, User: 1 << 30}, "unbounded": {}} {
		b.Run(name, func(b *testing.B) {
			store, text := userToken(b)
			s := New(Config{Access: store, Rates: &most}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
			r := httptest.NewRequest("GET", "http://127.0.0.1:7700/v1/whoami", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
