package config

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func TestOIDC(t *testing.T) {
	for words, change := range map[string]func(o *OIDCConfig){
		"":                         func(*OIDCConfig) {},
		"oidc.issuer is missing":   func(o *OIDCConfig) { o.Issuer = "" },
		"oidc.issuer":              func(o *OIDCConfig) { o.Issuer = `https://id.example/"` },
		"oidc.audience is missing": func(o *OIDCConfig) { o.Audience = "" },
		"nobody would have a role": func(o *OIDCConfig) { o.Users = nil },
		`"HS256"`:                  func(o *OIDCConfig) { o.Algorithms = []string{"HS256"} },
		"scopes must be":           func(o *OIDCConfig) { o.Scopes = []string{"openid profile"} },
		"client_id and":            func(o *OIDCConfig) { o.ClientID = "a\"\r\nX: y" },
	} {
		c := Default()
		c.Site, c.OIDC.Issuer, c.OIDC.Audience, c.OIDC.Users = "a", "https://id.example", "cloudshare", []string{"physics"}
		change(&c.OIDC)
		err := c.Validate()
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", words, err)
		}
		if err != nil && (cli.CodeOf(err) != cli.ExitUsage || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: exit %d, %q", words, cli.CodeOf(err), err)
		}
	}
	o := defaultOIDC()
	if o.Challenge() != "" {
		t.Error("a challenge without a provider")
	}
	o.Issuer, o.Audience = "https://id.example", "cloudshare"
	want := `realm="cloudshare", issuer="https://id.example", client_id="cloudshare", scope="openid profile offline_access"`
	if got := o.Challenge(); got != want {
		t.Error(got)
	}
}
