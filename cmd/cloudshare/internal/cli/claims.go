package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// idClaims are those of an ID token that a login is compared with. Who signed it is the broker's to judge: the token
// came from the provider itself, by TLS.
type idClaims struct {
	Issuer   string   `json:"iss"`
	Audience audience `json:"aud"`
	Expires  float64  `json:"exp"`
}

func (c idClaims) expires() time.Time { return time.Unix(int64(c.Expires), 0).UTC() }

// audience is one name, or a list of them.
type audience []string

// UnmarshalJSON reads either form.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func readClaims(token string) (idClaims, error) {
	var claims idClaims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims, errNoIDToken
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > 253e9 {
		return claims, errNoIDToken
	}
	return claims, nil
}

// check refuses an ID token that is not of the login's provider for the login's client.
func (l Login) check(c idClaims) error {
	switch {
	case c.Issuer != l.Issuer:
		return fmt.Errorf("the ID token is of issuer %.200q, not of %s: nothing is sent to the broker; ask its operator", c.Issuer, l.Issuer)
	case !slices.Contains(c.Audience, l.Client):
		return fmt.Errorf("the ID token is for %.200q, not for client %.80q: nothing is sent to the broker; ask its operator", c.Audience, l.Client)
	}
	return nil
}

func (l Login) sameClient(as Login) bool { return l.Issuer == as.Issuer && l.Client == as.Client }

// CheckLogin refuses a login at an address that is bound to another provider or client by its last login, and, unless
// they are shared, a provider and client to which another address is bound: its broker could have the user confirm a
// login whose tokens count there.
func (c Contexts) CheckLogin(addr string, l Login, shared bool) error {
	f, err := c.read()
	if err != nil {
		return err
	}
	at := f.at(addr)
	if was := f.Contexts[at].Login; was != nil {
		if was.sameClient(l) {
			return nil
		}
		return WithExit(ExitRefused, fmt.Errorf("%s now names client %.80q of %s to log in, before client %.80q of %s: if its operator says so, cloudshare logout first",
			at, l.Client, l.Issuer, was.Client, was.Issuer))
	}
	for other, known := range f.Contexts {
		if other != at && !shared && known.Login != nil && known.Login.sameClient(l) {
			return WithExit(ExitRefused, fmt.Errorf("%s names client %.80q of %s, by which you are logged in at %s: its tokens would count there, too; if one operator has both, use --shared-client",
				at, l.Client, l.Issuer, other))
		}
	}
	return nil
}
