package openid

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/access"
)

// A token that the provider issued to another client, which may hand it on, is not for this broker.
func TestAuthorizedParty(t *testing.T) {
	f := newFixture(t)
	f.tokens.verifier.cfg.Client = "cli"
	both, one := []string{"wiki", "cloudshare"}, []string{"cloudshare"}
	for name, c := range map[string]struct {
		changed map[string]any
		words   string // "" = taken
	}{
		"the audience":                {map[string]any{"aud": both, "azp": "cloudshare"}, ""},
		"the client":                  {map[string]any{"aud": both, "azp": "cli"}, ""},
		"one audience, none":          {map[string]any{"aud": one}, ""},
		"one audience, the client":    {map[string]any{"azp": "cli"}, ""},
		"several audiences, none":     {map[string]any{"aud": both}, "another client"},
		"several audiences, another":  {map[string]any{"aud": both, "azp": "wiki"}, "another client"},
		"one audience, another":       {map[string]any{"azp": "wiki"}, "another client"},
		"empty":                       {map[string]any{"azp": ""}, "another client"},
		"no text":                     {map[string]any{"azp": []string{"cli"}}, "another client"},
		"several audiences, as Azp":   {map[string]any{"aud": both, "Azp": "cli"}, "another client"},
		"one audience, another's Azp": {map[string]any{"azp": "cli", "AZP": "wiki"}, ""},
	} {
		_, err := f.tokens.Find(f.token(t, c.changed))
		if c.words == "" && err != nil || c.words != "" && !refusedFor(err, access.Unproven, c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.tokens.verifier.cfg.Client = ""
	if _, err := f.tokens.Find(f.token(t, map[string]any{"azp": ""})); !refusedFor(err, access.Unproven, "another client") {
		t.Errorf("empty, without a client: %v", err)
	}
}

// Claims have exact names: "Iss" is another one than "iss", and may be what a user chose.
func TestNamesOfClaimsAreExact(t *testing.T) {
	f := newFixture(t)
	past, future := f.now.Unix()-1e6, f.now.Unix()+3600
	for name, c := range map[string]struct {
		changed map[string]any
		words   string
	}{
		"Iss":    {map[string]any{"iss": "https://evil.example", "Iss": f.URL}, "another issuer"},
		"no iss": {map[string]any{"iss": nil, "ISS": f.URL}, "another issuer"},
		"Aud":    {map[string]any{"aud": "wiki", "Aud": "cloudshare"}, "another audience"},
		"no aud": {map[string]any{"aud": nil, "AUD": "cloudshare"}, "another audience"},
		"Exp":    {map[string]any{"exp": past, "Exp": future}, "expired"},
		"no exp": {map[string]any{"exp": nil, "eXp": future}, "when it ends"},
		"Nbf":    {map[string]any{"nbf": future, "Nbf": past}, "future"},
		"text":   {map[string]any{"exp": "never"}, "malformed"},
	} {
		if _, err := f.tokens.Find(f.token(t, c.changed)); !refusedFor(err, access.Unproven, c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What others' names hold does no harm, either.
	if _, err := f.tokens.Find(f.token(t, map[string]any{"Iss": "x", "Aud": 7, "Exp": "y", "zbf": past})); err != nil {
		t.Error(err)
	}
}
