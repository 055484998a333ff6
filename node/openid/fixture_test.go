package openid

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cloudshare/cloudshare/node/access"
)

// provider is one whose answers the test decides.
type provider struct {
	*httptest.Server
	keys  atomic.Pointer[jose.JSONWebKeySet]
	stall atomic.Pointer[chan struct{}] // if set: keys are answered once it is closed
	away  atomic.Bool
	asked atomic.Int64 // for keys
}

func serve(t testing.TB) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/keys" {
			p.asked.Add(1)
			if wait := p.stall.Load(); wait != nil {
				<-*wait
			}
			_ = json.NewEncoder(w).Encode(p.keys.Load())
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
	}))
	t.Cleanup(p.Close)
	return p
}

// shows has the provider have one key.
func (p *provider) shows(id string, public crypto.PublicKey) {
	p.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: id, Use: "sig"}}})
}

func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// fixture is a provider, and tokens whose clock the test sets.
type fixture struct {
	*provider
	tokens *Tokens
	key    *ecdsa.PrivateKey
	now    time.Time
}

func newFixture(t testing.TB) *fixture {
	own, err := access.OpenIn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{provider: serve(t), key: newKey(t), now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	f.shows("a", f.key.Public())
	f.tokens = New(Config{
		Issuer: f.URL, Audience: "cloudshare", Algorithms: []string{"ES256", "RS256"}, UserClaim: "preferred_username", RoleClaim: "groups",
		Operators: []string{"admins"}, Users: []string{"physics"}, ReadOnly: []string{"guests"}, Now: func() time.Time { return f.now },
	}, own)
	return f
}

// claims returns valid ones with some of them changed; nil removes one.
func (f *fixture) claims(changed map[string]any) map[string]any {
	all := map[string]any{
		"iss": f.URL, "aud": "cloudshare", "sub": "1", "preferred_username": "alice", "groups": []string{"physics"},
		"iat": f.now.Unix(), "exp": f.now.Add(time.Hour).Unix(),
	}
	for name, v := range changed {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

func (f *fixture) token(t *testing.T, changed map[string]any) string {
	t.Helper()
	return sign(t, jose.ES256, f.key, "a", f.claims(changed))
}

// refusedFor reports whether an error is a refusal of a kind that says so.
func refusedFor(err error, kind access.RefusalKind, words string) bool {
	var r *access.Refusal
	return errors.As(err, &r) && r.Kind == kind && strings.Contains(r.Why, words) && !strings.Contains(r.Why, "\n")
}
