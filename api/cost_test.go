package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/audit"
)

// userToken makes a store with a user's token, and its text.
func userToken(b *testing.B) (*access.Store, string) {
	b.Helper()
	store, err := access.Open(b.TempDir() + "/" + access.TokensFile)
	if err != nil {
		b.Fatal(err)
	}
	text, _, err := store.Create(access.Token{Name: "bench", User: "alice", Role: access.User})
	if err != nil {
		b.Fatal(err)
	}
	return store, text
}

// BenchmarkSubmission is what a submission costs in the handler, without the broker behind it: with no token asked for,
// by a user's token, and with the record of who did it.
func BenchmarkSubmission(b *testing.B) {
	store, text := userToken(b)
	record, err := audit.Open(audit.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"open", Config{}}, {"token", Config{Access: store}}, {"recorded", Config{Access: store, Audit: record}}} {
		b.Run(c.name, func(b *testing.B) {
			c.cfg.Rates = &Rates{WrongTokens: 10, Anonymous: 1000, User: 1 << 30}
			s := New(c.cfg, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "http://127.0.0.1:7700/v1/jobs", strings.NewReader(`{"command":["true"]}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+text)
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code/100 != 2 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
	if err := record.Close(); err != nil {
		b.Fatal(err)
	}
}
