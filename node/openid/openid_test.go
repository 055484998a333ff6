package openid

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
	away  atomic.Bool
	asked atomic.Int64 // for keys
}

func serve(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/keys" {
			p.asked.Add(1)
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

func newKey(t *testing.T) *ecdsa.PrivateKey {
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

func newFixture(t *testing.T) *fixture {
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

func TestLifeOfATokenOfTheProvider(t *testing.T) {
	f := newFixture(t)
	text := f.token(t, nil)
	for range 3 {
		got, err := f.tokens.Find(text)
		if err != nil || got.User != "alice" || got.Role != access.User || !got.Expires.Equal(f.now.Add(time.Hour+Leeway)) ||
			!strings.HasPrefix(got.ID, IDPrefix) || len(got.ID) != len(IDPrefix)+16 {
			t.Fatalf("%+v, %v", got, err)
		}
		if again, err := f.tokens.ByID(got.ID); err != nil || again.ID != got.ID {
			t.Fatalf("%+v, %v", again, err)
		}
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
	got, _ := f.tokens.Find(text)
	f.now = f.now.Add(time.Hour + Leeway - 1)
	if _, err := f.tokens.ByID(got.ID); err != nil {
		t.Error(err)
	}
	f.now = f.now.Add(1)
	if _, err := f.tokens.ByID(got.ID); !errors.Is(err, access.ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
	if _, err := f.tokens.Find(text); err == nil {
		t.Error("found at its end")
	}
	if _, err := f.tokens.ByID(IDPrefix + "x"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("never seen: %v", err)
	}
}

// The broker's own tokens are found as before.
func TestOwnTokens(t *testing.T) {
	f := newFixture(t)
	text, made, err := f.tokens.Create(access.Token{Name: "ci", User: "bob", Role: access.User})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.tokens.Find(text); err != nil || got.ID != made.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := f.tokens.Find("hunter2"); !errors.Is(err, access.ErrNoToken) {
		t.Error(err)
	}
	if f.asked.Load() != 0 {
		t.Error("the provider was asked")
	}
}

func TestClaims(t *testing.T) {
	f := newFixture(t)
	at := func(d time.Duration) int64 { return f.now.Add(d).Unix() }
	for name, c := range map[string]struct {
		changed map[string]any
		kind    access.RefusalKind
		words   string // "" = taken
	}{
		"list of audiences":      {map[string]any{"aud": []string{"x", "cloudshare"}}, 0, ""},
		"a group as text":        {map[string]any{"groups": "physics"}, 0, ""},
		"fractions of a second":  {map[string]any{"exp": float64(at(time.Hour)) + .5}, 0, ""},
		"expired 30 s ago":       {map[string]any{"exp": at(-30 * time.Second)}, 0, ""},
		"issued in 30 s":         {map[string]any{"iat": at(30 * time.Second), "nbf": at(30 * time.Second)}, 0, ""},
		"no iat":                 {map[string]any{"iat": nil}, 0, ""},
		"expired 120 s ago":      {map[string]any{"exp": at(-2 * time.Minute)}, access.Unproven, "expired"},
		"issued in 120 s":        {map[string]any{"iat": at(2 * time.Minute)}, access.Unproven, "clocks"},
		"holds in 120 s":         {map[string]any{"nbf": at(2 * time.Minute)}, access.Unproven, "clocks"},
		"no end":                 {map[string]any{"exp": nil}, access.Unproven, "when it ends"},
		"end beyond dates":       {map[string]any{"exp": 1e300}, access.Unproven, ""},
		"another issuer":         {map[string]any{"iss": "https://evil.example"}, access.Unproven, "another issuer"},
		"no issuer":              {map[string]any{"iss": nil}, access.Unproven, "another issuer"},
		"another audience":       {map[string]any{"aud": "wiki"}, access.Unproven, "another audience"},
		"no audience":            {map[string]any{"aud": nil}, access.Unproven, "another audience"},
		"no user":                {map[string]any{"preferred_username": nil}, access.NoRole, "no claim preferred_username"},
		"a user of another form": {map[string]any{"preferred_username": "../Al\nice"}, access.NoRole, "cannot be a user's name"},
		"user as a number":       {map[string]any{"preferred_username": 7}, access.NoRole, "no claim"},
		"another group":          {map[string]any{"groups": []string{"chess"}}, access.NoRole, "gives alice a role"},
		"no groups":              {map[string]any{"groups": nil}, access.NoRole, "gives alice a role"},
		"groups of numbers":      {map[string]any{"groups": []any{1, "physics"}}, access.NoRole, "gives alice a role"},
		"group *":                {map[string]any{"groups": []string{Anyone}}, access.NoRole, "gives alice a role"},
	} {
		_, err := f.tokens.Find(f.token(t, c.changed))
		if c.words == "" && c.kind == 0 && name != "end beyond dates" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if !refusedFor(err, c.kind, c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRoles(t *testing.T) {
	c := Config{Operators: []string{"o"}, Users: []string{"u"}, ReadOnly: []string{"r"}}
	everybody := Config{Users: []string{Anyone}}
	for _, x := range []struct {
		c      Config
		values []string
		role   access.Role
	}{
		{c, []string{"r", "u", "o"}, access.Operator},
		{c, []string{"r", "u"}, access.User},
		{c, []string{"r"}, access.ReadOnly},
		{c, nil, ""},
		{c, []string{"", "O"}, ""},
		{everybody, nil, access.User},
		{Config{Users: []string{Anyone}, Operators: []string{"o"}}, []string{"o"}, access.Operator},
	} {
		if got := x.c.roleOf(x.values); got != x.role {
			t.Errorf("%v: %q, want %q", x.values, got, x.role)
		}
	}
}

func TestUnverifiedAddress(t *testing.T) {
	f := newFixture(t)
	f.tokens.verifier.cfg.UserClaim = "email"
	for _, verified := range []any{nil, false, "true"} {
		_, err := f.tokens.Find(f.token(t, map[string]any{"email": "alice@example.org", "email_verified": verified}))
		if !refusedFor(err, access.NoRole, "not verified") {
			t.Errorf("%v: %v", verified, err)
		}
	}
	got, err := f.tokens.Find(f.token(t, map[string]any{"email": "alice@example.org", "email_verified": true}))
	if err != nil || got.User != "alice@example.org" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whoever forges a token has the provider's public keys and its claims, and nothing else.
func TestForgedTokens(t *testing.T) {
	f := newFixture(t)
	good := f.token(t, nil)
	parts := strings.Split(good, ".")
	raw := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	public, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(jose.JSONWebKey{Key: f.key.Public(), KeyID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"alg none":               raw(`{"alg":"none","kid":"a"}`) + "." + parts[1] + ".",
		"alg None, signed":       raw(`{"alg":"None","kid":"a"}`) + "." + parts[1] + "." + parts[2],
		"HMAC by the public key": sign(t, jose.HS256, secret, "a", f.claims(nil)),
		"no signature":           parts[0] + "." + parts[1] + ".",
		"changed claims":         parts[0] + "." + raw(`{"iss":"`+f.URL+`"}`) + "." + parts[2],
		"another key":            sign(t, jose.ES256, newKey(t), "a", f.claims(nil)),
		"another kind of key":    sign(t, jose.RS256, public, "a", f.claims(nil)),
		"an algorithm not ours":  sign(t, jose.PS256, public, "a", f.claims(nil)),
		"an unknown key":         sign(t, jose.ES256, newKey(t), "b", f.claims(nil)),
		"no JSON":                "eyJ.x.y",
		"huge":                   "eyJ." + strings.Repeat("A", maxText) + ".y",
	} {
		if got, err := f.tokens.Find(text); !refusedFor(err, access.Unproven, "") || got.ID != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if len(f.tokens.verified) != 0 {
		t.Error("a forged token is remembered")
	}
}

// New keys are found when tokens name them, and made-up names cause no storm.
func TestKeysAreRotated(t *testing.T) {
	f := newFixture(t)
	if _, err := f.tokens.Find(f.token(t, nil)); err != nil {
		t.Fatal(err)
	}
	old := f.token(t, map[string]any{"sub": "2"})
	f.key = newKey(t)
	f.shows("b", f.key.Public())
	renewed := sign(t, jose.ES256, f.key, "b", f.claims(nil))
	for range 50 {
		if _, err := f.tokens.Find(renewed); !refusedFor(err, access.Unproven, "does not have") {
			t.Fatal(err)
		}
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("%d questions within %s", n, askEvery)
	}
	f.now = f.now.Add(askEvery)
	if _, err := f.tokens.Find(renewed); err != nil || f.asked.Load() != 2 {
		t.Errorf("%v, %d questions", err, f.asked.Load())
	}
	if _, err := f.tokens.Find(old); !refusedFor(err, access.Unproven, "does not have") {
		t.Errorf("of the withdrawn key: %v", err)
	}
}

func TestProviderAway(t *testing.T) {
	f := newFixture(t)
	f.away.Store(true)
	if _, err := f.tokens.Find(f.token(t, nil)); !refusedFor(err, access.Away, "cannot be asked") {
		t.Error(err)
	}
	f.away.Store(false)
	f.now = f.now.Add(askEvery)
	if _, err := f.tokens.Find(f.token(t, nil)); err != nil {
		t.Errorf("back again: %v", err)
	}
	f.away.Store(true)
	f.now = f.now.Add(usableFor - askEvery)
	if _, err := f.tokens.Find(f.token(t, nil)); err != nil {
		t.Errorf("by keys that are known: %v", err)
	}
	f.now = f.now.Add(askEvery)
	if _, err := f.tokens.Find(f.token(t, nil)); !refusedFor(err, access.Away, "") {
		t.Errorf("by keys of yesterday: %v", err)
	}
}

// A set of keys may have some that this program does not know, and an answer may have no end.
func TestStrangeKeySets(t *testing.T) {
	key := newKey(t)
	text, err := json.Marshal(jose.JSONWebKey{Key: key.Public(), KeyID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	private, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: "private"})
	if err != nil {
		t.Fatal(err)
	}
	set := `{"keys":[{"kty":"OKP","crv":"Ed448","x":"AA"},{"kty":"oct","k":"c2VjcmV0"},` + string(private) + `,7,` + string(text) + `]}`
	if got, err := decodeKeys(strings.NewReader(set)); err != nil || len(got) != 1 || got[0].KeyID != "a" {
		t.Errorf("%v, %v", got, err)
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	if _, err := newKeys(endless.URL, time.Now).find("a"); err == nil || errors.Is(err, errNoKey) {
		t.Error(err)
	}
}

func TestVerifiedTokensAreBounded(t *testing.T) {
	f := newFixture(t)
	for i := range maxVerified + 3 {
		id := filepath.Join(IDPrefix, time.Duration(i).String())
		f.tokens.remember(verified{token: access.Token{ID: id, Expires: f.now.Add(time.Duration(i + 1))}})
	}
	if len(f.tokens.verified) != maxVerified {
		t.Errorf("%d", len(f.tokens.verified))
	}
	f.now = f.now.Add(time.Hour)
	f.tokens.remember(verified{token: access.Token{ID: "x", Expires: f.now.Add(1)}})
	if len(f.tokens.verified) != 1 {
		t.Errorf("%d stay of expired ones", len(f.tokens.verified))
	}
}

func TestValidate(t *testing.T) {
	good := func() Config {
		return Config{
			Issuer: "https://id.example", Audience: "a", Algorithms: []string{"RS256"}, UserClaim: "sub", RoleClaim: "g", Users: []string{"u"},
		}
	}
	for words, change := range map[string]func(c *Config){
		"":                             func(*Config) {},
		"must be a URL":                func(c *Config) { c.Issuer = "id.example" },
		"must be https":                func(c *Config) { c.Issuer = "http://id.example" },
		"oidc.audience is missing":     func(c *Config) { c.Audience = "" },
		`oidc.algorithms: "none"`:      func(c *Config) { c.Algorithms = []string{"RS256", "none"} },
		`oidc.algorithms: "HS256"`:     func(c *Config) { c.Algorithms = []string{"HS256"} },
		"oidc.algorithms is empty":     func(c *Config) { c.Algorithms = nil },
		"oidc.user_claim is empty":     func(c *Config) { c.UserClaim = "" },
		"nobody would have a role":     func(c *Config) { c.Users = nil },
		"everybody the operator":       func(c *Config) { c.Operators = []string{Anyone} },
		"an empty value gives no role": func(c *Config) { c.ReadOnly = []string{""} },
		"oidc.role_claim is empty":     func(c *Config) { c.RoleClaim = "" },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", words, err)
		}
	}
	if err := CheckIssuer("http://127.0.0.1:5556/dex"); err != nil {
		t.Error(err)
	}
}
