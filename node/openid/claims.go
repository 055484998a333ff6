package openid

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// claims are those of a token by their exact names: a struct would take "Exp" for "exp", too.
type claims map[string]json.RawMessage

// Said is what a token says of itself. Nobody has looked at who signed it.
type Said struct {
	Issuer   string
	Audience []string
	Expires  time.Time
}

// ErrNoToken reports a text that is no token of a provider, or one without an end.
var ErrNoToken = errors.New("no token of a provider that says when it ends")

// ReadUnproven returns what a token says of itself.
func ReadUnproven(text string) (Said, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Said{}, ErrNoToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	c := claims{}
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return Said{}, ErrNoToken
	}
	at, err := c.times()
	said := Said{Issuer: c.text("iss"), Audience: texts(c["aud"])}
	if _, has := c["aud"]; err != nil || at.expires == nil || *at.expires <= 0 || !sane(at.expires) ||
		has && said.Audience == nil {
		return Said{}, ErrNoToken
	}
	said.Expires = moment(*at.expires)
	return said, nil
}

// times are the claims about when a token holds, in seconds; some providers write fractions.
type times struct {
	expires, notBefore, issued *float64
}

func (c claims) times() (at times, err error) {
	for name, to := range map[string]**float64{"exp": &at.expires, "nbf": &at.notBefore, "iat": &at.issued} {
		if text, ok := c[name]; ok && json.Unmarshal(text, to) != nil {
			return at, refuse(access.Unproven, "the provider's token is malformed (%s): ask for another: cloudshare login", name)
		}
	}
	return at, nil
}

// text returns a claim that is a text, or "".
func (c claims) text(name string) string {
	var text string
	if json.Unmarshal(c[name], &text) != nil {
		return ""
	}
	return text
}

// checkFor refuses a token of another issuer, or for somebody else.
func (v *verifier) checkFor(c claims) error {
	audience, party := texts(c["aud"]), c.text("azp")
	_, has := c["azp"]
	switch {
	case c.text("iss") != v.cfg.Issuer:
		return refuse(access.Unproven, "the token is of another issuer than %s, which this broker trusts: cloudshare login", v.cfg.Issuer)
	case !slices.Contains(audience, v.cfg.Audience):
		return refuse(access.Unproven, "the token is for another audience than %q: ask the provider for one of that: cloudshare login", v.cfg.Audience)
	case (has || len(audience) > 1) && !slices.Contains(v.parties(), party):
		return refuse(access.Unproven, "the token was issued to another client (azp) than %s: cloudshare login", strings.Join(v.parties(), " or "))
	}
	return nil
}

// parties are the clients to which tokens may be issued.
func (v *verifier) parties() []string {
	if v.cfg.Client == "" || v.cfg.Client == v.cfg.Audience {
		return []string{v.cfg.Audience}
	}
	return []string{v.cfg.Audience, v.cfg.Client}
}

// texts reads a claim that is a text or a list of them.
func texts(claim json.RawMessage) []string {
	var one string
	if json.Unmarshal(claim, &one) == nil {
		return []string{one}
	}
	var list []string
	if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	return list
}

func moment(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

// sane keeps dates within what forms of them have: before the year 10000.
func sane(seconds *float64) bool { return seconds == nil || *seconds >= 0 && *seconds < 253e9 }

func (v *verifier) checkTimes(at times) error {
	now := v.cfg.Now()
	switch {
	case at.expires == nil, !sane(at.expires), !sane(at.notBefore), !sane(at.issued):
		return refuse(access.Unproven, "the provider's token does not say when it ends, or no date (exp, nbf, iat): have the provider say so")
	case !now.Before(moment(*at.expires).Add(Leeway)):
		return refuse(access.Unproven, "the token has expired at %s: cloudshare login", moment(*at.expires).Format(time.RFC3339))
	case at.notBefore != nil && now.Add(Leeway).Before(moment(*at.notBefore)),
		at.issued != nil && now.Add(Leeway).Before(moment(*at.issued)):
		return refuse(access.Unproven, "the token is of the future: the clocks of provider and broker differ by more than %s: set them", Leeway)
	}
	return nil
}
