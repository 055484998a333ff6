package openid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/cloudshare/cloudshare/node/access"
)

// Leeway is how far the provider's clock and the broker's may differ.
const Leeway = time.Minute

// maxText is the length of the longest token that is looked at, in bytes.
const maxText = 16 << 10

// LooksLike reports whether a text may be a JWT: a token of the broker has no dots.
func LooksLike(text string) bool {
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2
}

func refuse(kind access.RefusalKind, format string, args ...any) error {
	return &access.Refusal{Kind: kind, Why: fmt.Sprintf(format, args...)}
}

// verifier judges tokens.
type verifier struct {
	cfg  Config
	keys *keys
}

// times are the claims about when a token holds, in seconds; some providers write fractions.
type times struct {
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	Issued    *float64 `json:"iat"`
}

// verify returns what a token stands for, or a *access.Refusal.
func (v *verifier) verify(text string) (access.Token, error) {
	if len(text) > maxText {
		return access.Token{}, refuse(access.Unproven, "the token is longer than %d bytes: ask your provider for one with fewer groups", maxText)
	}
	set := &signers{keys: v.keys, algorithms: v.cfg.Algorithms}
	// Its own check of times is replaced: it has another leeway for each.
	checked, err := oidc.NewVerifier(v.cfg.Issuer, set, &oidc.Config{
		ClientID: v.cfg.Audience, SupportedSigningAlgs: v.cfg.Algorithms, SkipExpiryCheck: true,
	}).Verify(context.Background(), text)
	if err != nil {
		return access.Token{}, v.explain(set.err, err)
	}
	var at times
	claims := map[string]json.RawMessage{}
	if checked.Claims(&at) != nil || checked.Claims(&claims) != nil {
		return access.Token{}, refuse(access.Unproven, "the provider's token is malformed: ask for another: cloudshare login")
	}
	if err = v.checkTimes(at); err != nil {
		return access.Token{}, err
	}
	t := access.Token{Name: "login at " + v.cfg.Issuer, Expires: moment(*at.Expires).Add(Leeway)}
	if at.Issued != nil {
		t.Created = moment(*at.Issued)
	}
	if t.User, err = v.user(claims); err != nil {
		return access.Token{}, err
	}
	t.Role, err = v.role(t.User, claims)
	return t, err
}

// explain words why a token was not proven.
func (v *verifier) explain(byKeys, err error) error {
	switch {
	case errors.Is(byKeys, errNoKey):
		return refuse(access.Unproven, "the token is signed with a key that %s does not have: it is another provider's, forged, or old: cloudshare login", v.cfg.Issuer)
	case errors.Is(byKeys, errForged):
		return refuse(access.Unproven, "the token's signature is wrong: it was changed or forged: cloudshare login")
	case byKeys != nil:
		return refuse(access.Away, "the identity provider %s cannot be asked (%s): try again, or send a token of the broker (cst_…)", v.cfg.Issuer, oneLine(byKeys))
	case strings.Contains(err.Error(), "different provider"):
		return refuse(access.Unproven, "the token is of another issuer than %s, which this broker trusts: cloudshare login", v.cfg.Issuer)
	case strings.Contains(err.Error(), "expected audience"):
		return refuse(access.Unproven, "the token is for another audience than %q: ask the provider for one of that: cloudshare login", v.cfg.Audience)
	}
	return refuse(access.Unproven, "the token is no JWT that is signed by %s: cloudshare login", strings.Join(v.cfg.Algorithms, " or "))
}

// oneLine words an error that may hold what the provider answered.
func oneLine(err error) string {
	return fmt.Sprintf("%.200s", strings.Join(strings.Fields(err.Error()), " "))
}

func moment(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

// sane keeps dates within what forms of them have: before the year 10000.
func sane(seconds *float64) bool { return seconds == nil || *seconds >= 0 && *seconds < 253e9 }

func (v *verifier) checkTimes(at times) error {
	now := v.cfg.Now()
	switch {
	case at.Expires == nil, !sane(at.Expires), !sane(at.NotBefore), !sane(at.Issued):
		return refuse(access.Unproven, "the provider's token does not say when it ends, or no date (exp, nbf, iat): have the provider say so")
	case !now.Before(moment(*at.Expires).Add(Leeway)):
		return refuse(access.Unproven, "the token has expired at %s: cloudshare login", moment(*at.Expires).Format(time.RFC3339))
	case at.NotBefore != nil && now.Add(Leeway).Before(moment(*at.NotBefore)),
		at.Issued != nil && now.Add(Leeway).Before(moment(*at.Issued)):
		return refuse(access.Unproven, "the token is of the future: the clocks of provider and broker differ by more than %s: set them", Leeway)
	}
	return nil
}

func (v *verifier) user(claims map[string]json.RawMessage) (string, error) {
	var name string
	if json.Unmarshal(claims[v.cfg.UserClaim], &name) != nil || name == "" {
		return "", refuse(access.NoRole, "the token has no claim %s, which holds the user's name here: ask the site's operator", v.cfg.UserClaim)
	}
	var verified bool
	if v.cfg.UserClaim == "email" && (json.Unmarshal(claims["email_verified"], &verified) != nil || !verified) {
		return "", refuse(access.NoRole, "the provider has not verified the address in email: it could be another one's; verify it there")
	}
	if !access.ValidUser(name) {
		return "", refuse(access.NoRole, "%.80q, of claim %s, cannot be a user's name here: that has 1 to 63 small letters, digits, '.', '_', '-' or '@'", name, v.cfg.UserClaim)
	}
	return name, nil
}

func (v *verifier) role(user string, claims map[string]json.RawMessage) (access.Role, error) {
	role := v.cfg.roleOf(texts(claims[v.cfg.RoleClaim]))
	if role == "" {
		return "", refuse(access.NoRole, "no value of claim %s gives %s a role at this site: ask its operator", v.cfg.RoleClaim, user)
	}
	return role, nil
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

// errForged reports a signature that the key it names did not make.
var errForged = errors.New("wrong signature")

// signers verifies one signature and keeps why it failed, which the library only words.
type signers struct {
	keys       *keys
	algorithms []string
	err        error
}

var _ oidc.KeySet = (*signers)(nil)

// VerifySignature implements oidc.KeySet.
func (s *signers) VerifySignature(_ context.Context, text string) ([]byte, error) {
	payload, err := s.verify(text)
	s.err = err
	return payload, err
}

func (s *signers) verify(text string) ([]byte, error) {
	allowed := make([]jose.SignatureAlgorithm, len(s.algorithms))
	for i, a := range s.algorithms {
		allowed[i] = jose.SignatureAlgorithm(a)
	}
	signed, err := jose.ParseSignedCompact(text, allowed)
	if err != nil {
		return nil, errForged
	}
	header := signed.Signatures[0].Header
	known, err := s.keys.find(header.KeyID)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.DeleteFunc(known, func(k jose.JSONWebKey) bool {
		return k.Algorithm != "" && k.Algorithm != header.Algorithm
	}) {
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errForged
}
