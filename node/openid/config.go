package openid

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// Config of the provider whose tokens are taken.
type Config struct {
	Issuer     string   // URL, as the tokens say it
	Audience   string   // for whom a token must be
	Client     string   // to which a token may be issued (azp), beside Audience; may be empty
	Algorithms []string // that may sign
	UserClaim  string   // holds the user's name
	RoleClaim  string   // holds a text or a list of texts, such as groups
	// Values of RoleClaim that give each role; Anyone is everybody of the issuer and audience.
	Operators, Users, ReadOnly []string

	Now func() time.Time // nil: time.Now
}

// Anyone in the list of a role gives it to whoever has a valid token.
const Anyone = "*"

// signatures are the algorithms that may be configured. None and HMAC are not among them: the one proves nothing, the
// key of the other would be a secret that the broker shares with the provider.
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Validate returns the first thing that is wrong, by its key.
func (c Config) Validate() error {
	if err := CheckIssuer(c.Issuer); err != nil {
		return err
	}
	switch {
	case c.Audience == "":
		return fmt.Errorf("oidc.audience is missing: name whom the provider issues tokens for, mostly the client's ID")
	case c.UserClaim == "":
		return fmt.Errorf("oidc.user_claim is empty: name the claim that holds the user's name, such as preferred_username")
	case len(c.Algorithms) == 0:
		return fmt.Errorf("oidc.algorithms is empty: name those that the provider signs with, such as RS256")
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(signatures, a) {
			return fmt.Errorf("oidc.algorithms: %q: must be of %s", a, strings.Join(signatures, ", "))
		}
	}
	return c.validateRoles()
}

func (c Config) validateRoles() error {
	all := slices.Concat(c.Operators, c.Users, c.ReadOnly)
	named := slices.ContainsFunc(all, func(v string) bool { return v != Anyone })
	switch {
	case len(all) == 0:
		return fmt.Errorf("oidc.operators, oidc.users and oidc.read_only are empty: nobody would have a role; name values of %s", c.RoleClaim)
	case slices.Contains(all, ""):
		return fmt.Errorf("oidc.operators, oidc.users, oidc.read_only: an empty value gives no role: remove it")
	case slices.Contains(c.Operators, Anyone):
		return fmt.Errorf("oidc.operators: %q would make everybody the operator: name values of %s", Anyone, c.RoleClaim)
	case named && c.RoleClaim == "":
		return fmt.Errorf("oidc.role_claim is empty: name the claim whose values give roles, such as groups")
	}
	return nil
}

// CheckIssuer refuses what is no issuer: keys that come over plain HTTP could be anybody's.
func CheckIssuer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(text, "\"\\ ") || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("oidc.issuer %.200q: must be a URL such as https://id.example.org/realms/lab", text)
	case isSafe(u):
		return nil
	}
	return fmt.Errorf("oidc.issuer %.200q: must be https, but on loopback", text)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// roleOf returns the greatest role that values give, "" for none.
func (c Config) roleOf(values []string) access.Role {
	for _, r := range []struct {
		role access.Role
		need []string
	}{{access.Operator, c.Operators}, {access.User, c.Users}, {access.ReadOnly, c.ReadOnly}} {
		gives := func(v string) bool { return v != Anyone && slices.Contains(values, v) }
		if slices.Contains(r.need, Anyone) || slices.ContainsFunc(r.need, gives) {
			return r.role
		}
	}
	return ""
}
