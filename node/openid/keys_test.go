package openid

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cloudshare/cloudshare/node/access"
)

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
	if len(f.tokens.verified.byID) != 0 {
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

// A made-up key ID, about which the provider is slow to answer, keeps nobody else waiting.
func TestSlowProvider(t *testing.T) {
	f := newFixture(t)
	if _, err := f.tokens.Find(f.token(t, nil)); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(askEvery)
	wait, done := make(chan struct{}), make(chan error)
	f.stall.Store(&wait)
	forged := sign(t, jose.ES256, newKey(t), "b", f.claims(nil))
	go func() {
		_, err := f.tokens.Find(forged)
		done <- err
	}()
	for f.asked.Load() < 2 {
		runtime.Gosched()
	}
	if _, err := f.tokens.Find(f.token(t, map[string]any{"sub": "2"})); err != nil {
		t.Error(err)
	}
	close(wait)
	if err := <-done; !refusedFor(err, access.Unproven, "does not have") {
		t.Error(err)
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

// An empty set, as of a provider that starts, does not take the place of known keys.
func TestEmptySetKeepsKnownKeys(t *testing.T) {
	f := newFixture(t)
	late := map[string]any{"exp": f.now.Add(48 * time.Hour).Unix()}
	text := f.token(t, late)
	if _, err := f.tokens.Find(text); err != nil {
		t.Fatal(err)
	}
	f.keys.Store(&jose.JSONWebKeySet{})
	f.now = f.now.Add(freshFor)
	if _, err := f.tokens.Find(text); err != nil || f.asked.Load() != 2 {
		t.Errorf("%v, %d questions", err, f.asked.Load())
	}
	f.now = f.now.Add(usableFor)
	if _, err := f.tokens.Find(text); !refusedFor(err, access.Away, "shows no key") {
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
