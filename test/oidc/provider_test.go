package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const clientID = "cloudshare"

// provider is a real one, with a key and groups that the test changes.
type provider struct {
	*storage.Storage
	server *httptest.Server
	away   atomic.Bool

	mu       sync.Mutex
	key      *signingKey   // guarded by mu
	groups   []string      // of every user; guarded by mu
	lifetime time.Duration // of tokens; guarded by mu
}

// users knows one person.
type users struct{ alice storage.User }

func (u *users) GetUserByID(string) *storage.User       { return &u.alice }
func (u *users) GetUserByUsername(string) *storage.User { return &u.alice }
func (u *users) ExampleClientID() string                { return "service" }

// startProvider serves a provider until the test ends.
func startProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{key: newKey(t, "first"), groups: []string{"physics"}, lifetime: time.Hour}
	p.Storage = storage.NewStorageWithClients(&users{storage.User{ID: "1", Username: "alice"}},
		map[string]*storage.Client{clientID: storage.NativeClient(clientID)})
	var handler http.Handler
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	var err error
	handler, err = op.NewProvider(&op.Config{
		CryptoKey: [32]byte{1}, CryptoKeyId: "k", GrantTypeRefreshToken: true,
		DeviceAuthorization: op.DeviceAuthorizationConfig{
			Lifetime: 5 * time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20,
		},
	}, p, op.StaticIssuer(p.issuer()), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *provider) issuer() string { return p.server.URL }

// rotate has the provider sign with another key, and withdraw the old one.
func (p *provider) rotate(t *testing.T, id string) {
	key := newKey(t, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = key
}

// set changes what the provider says of its users.
func (p *provider) set(lifetime time.Duration, groups ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifetime, p.groups = lifetime, groups
}

// signingKey is one of the provider's.
type signingKey struct {
	id  string
	key *ecdsa.PrivateKey
}

func newKey(t *testing.T, id string) *signingKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signingKey{id, key}
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k *signingKey) Key() any                                    { return k.key }
func (k *signingKey) ID() string                                  { return k.id }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return k.key.Public() }

// SigningKey implements op.AuthStorage.
func (p *provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, nil
}

// SignatureAlgorithms implements op.AuthStorage.
func (p *provider) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.ES256}, nil
}

// KeySet implements op.AuthStorage.
func (p *provider) KeySet(context.Context) ([]op.Key, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []op.Key{publicKey{p.key}}, nil
}

// SetUserinfoFromRequest implements op.CanSetUserinfoFromRequest.
func (p *provider) SetUserinfoFromRequest(
	ctx context.Context, info *oidc.UserInfo, r op.IDTokenRequest, scopes []string,
) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	info.AppendClaims("groups", p.groups)
	return p.Storage.SetUserinfoFromRequest(ctx, info, r, scopes)
}

// TokenRequestByRefreshToken implements op.AuthStorage: what the storage makes for a device does not say which client.
func (p *provider) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	r, err := p.Storage.TokenRequestByRefreshToken(ctx, token)
	if known, ok := r.(*storage.RefreshTokenRequest); ok {
		known.ApplicationID = clientID
	}
	return r, err
}

// client is a public one that may use the device grant.
type client struct {
	op.Client
	life time.Duration
}

func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeDeviceCode, oidc.GrantTypeRefreshToken}
}
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c client) IDTokenLifetime() time.Duration       { return c.life }

// GetClientByClientID implements op.OPStorage.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	known, err := p.Storage.GetClientByClientID(ctx, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return client{known, p.lifetime}, err
}

// claims are those of a token that the broker takes; some are changed, nil removes one.
func (p *provider) claims(changed map[string]any) map[string]any {
	all := map[string]any{
		"iss": p.issuer(), "aud": clientID, "sub": "1", "preferred_username": "alice", "groups": []string{"physics"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, v := range changed {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

// sign makes a token as the provider does, with claims of the test.
func (p *provider) sign(t *testing.T, changed map[string]any) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return sign(t, jose.ES256, p.key.key, p.key.id, p.claims(changed))
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
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
