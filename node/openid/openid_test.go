package openid

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cloudshare/cloudshare/node/access"
)

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
		"list of audiences":      {map[string]any{"aud": []string{"x", "cloudshare"}, "azp": "cloudshare"}, 0, ""},
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

// BenchmarkFind is what a request pays for a token that was verified before.
func BenchmarkFind(b *testing.B) {
	f := newFixture(b)
	text := sign(b, jose.ES256, f.key, "a", f.claims(nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.tokens.Find(text); err != nil {
			b.Fatal(err)
		}
	}
}
