package config

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/openid"
)

// OIDCConfig is of the identity provider whose users may ask this broker, beside the holders of its own tokens.
type OIDCConfig struct {
	Issuer     string   `koanf:"issuer" doc:"URL of the OpenID provider whose users may ask the API by its tokens; empty = none"`
	Audience   string   `koanf:"audience" doc:"whom its tokens must be for (aud), mostly the client's ID"`
	ClientID   string   `koanf:"client_id" doc:"as which client cloudshare login logs in, by the device grant, without a secret; empty = audience"`
	Scopes     []string `koanf:"scopes" doc:"what cloudshare login asks for"`
	Algorithms []string `koanf:"algorithms" doc:"that may sign its tokens; never none, never HMAC"`
	UserClaim  string   `koanf:"user_claim" doc:"claim with the user's name. The provider must give each name to one user for good; with email, email_verified must be true"`
	RoleClaim  string   `koanf:"role_claim" doc:"claim with a text or a list of texts that give roles"`
	Operators  []string `koanf:"operators" doc:"values of role_claim whose users are operators of this site"`
	Users      []string `koanf:"users" doc:"values of role_claim whose users submit jobs and end them; * = all users of the provider"`
	ReadOnly   []string `koanf:"read_only" doc:"values of role_claim whose users look; * = all users of the provider. Who has none of these roles is refused"`
}

func defaultOIDC() OIDCConfig {
	return OIDCConfig{
		Scopes: []string{"openid", "profile", "offline_access"}, Algorithms: []string{"RS256", "ES256"},
		UserClaim: "preferred_username", RoleClaim: "groups", Operators: []string{}, Users: []string{}, ReadOnly: []string{},
	}
}

// checkOIDC checks what is said of the provider, without asking it.
func (c Config) checkOIDC() error {
	o := c.OIDC
	if o.Issuer == "" {
		if o.Audience != "" || o.ClientID != "" || len(o.Operators)+len(o.Users)+len(o.ReadOnly) > 0 {
			return cli.Usage("oidc.issuer is missing: name the provider's URL, or drop the other keys of oidc")
		}
		return nil
	}
	if err := c.ForOpenID().Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	for _, text := range append([]string{o.client()}, o.Scopes...) {
		if text == "" || strings.ContainsFunc(text, notQuotable) {
			return cli.Usage("oidc: %q: client_id and scopes must be of printable ASCII letters, "+
				"without spaces, quotes and backslashes", text)
		}
	}
	return nil
}

// notQuotable reports whether a letter cannot stand in a scope, or between quotes in a header.
func notQuotable(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// ForOpenID returns what is told of the provider.
func (c Config) ForOpenID() openid.Config {
	o := c.OIDC
	return openid.Config{
		Issuer: o.Issuer, Audience: o.Audience, Client: o.client(), Algorithms: o.Algorithms,
		UserClaim: o.UserClaim, RoleClaim: o.RoleClaim,
		Operators: o.Operators, Users: o.Users, ReadOnly: o.ReadOnly,
	}
}

func (o OIDCConfig) client() string {
	if o.ClientID == "" {
		return o.Audience
	}
	return o.ClientID
}

// Challenge says in a 401 where to log in; "" without a provider.
func (o OIDCConfig) Challenge() string {
	if o.Issuer == "" {
		return ""
	}
	return fmt.Sprintf(`realm="cloudshare", issuer="%s", client_id="%s", scope="%s"`,
		o.Issuer, o.client(), strings.Join(o.Scopes, " "))
}
