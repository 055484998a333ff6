package openid

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// verify returns what a token stands for and who signed it, or a *access.Refusal.
func (v *verifier) verify(text string) (access.Token, signer, error) {
	if len(text) > maxText {
		return access.Token{}, signer{}, refuse(access.Unproven, "the token is longer than %d bytes: ask your provider for one with fewer groups", maxText)
	}
	payload, by, err := v.payload(text)
	if err != nil {
		return access.Token{}, signer{}, v.explain(err)
	}
	c := claims{}
	if json.Unmarshal(payload, &c) != nil {
		return access.Token{}, signer{}, refuse(access.Unproven, "the provider's token is malformed: ask for another: cloudshare login")
	}
	if err = v.checkFor(c); err != nil {
		return access.Token{}, signer{}, err
	}
	t, err := v.token(c)
	return t, by, err
}

// token returns what claims stand for that are the provider's.
func (v *verifier) token(c claims) (access.Token, error) {
	at, err := c.times()
	if err == nil {
		err = v.checkTimes(at)
	}
	if err != nil {
		return access.Token{}, err
	}
	t := access.Token{Name: "login at " + v.cfg.Issuer, Expires: moment(*at.expires).Add(Leeway)}
	if at.issued != nil {
		t.Created = moment(*at.issued)
	}
	if t.User, err = v.user(c); err != nil {
		return access.Token{}, err
	}
	t.Role, err = v.role(t.User, c)
	return t, err
}

// explain words why a token was not proven.
func (v *verifier) explain(err error) error {
	switch {
	case errors.Is(err, errNotSigned):
		return refuse(access.Unproven, "the token is no JWT that is signed by %s: cloudshare login", strings.Join(v.cfg.Algorithms, " or "))
	case errors.Is(err, errNoKey):
		return refuse(access.Unproven, "the token is signed with a key that %s does not have: it is another provider's, forged, or old: cloudshare login", v.cfg.Issuer)
	case errors.Is(err, errForged):
		return refuse(access.Unproven, "the token's signature is wrong: it was changed or forged: cloudshare login")
	}
	return refuse(access.Away, "the identity provider %s cannot be asked (%s): try again, or send a token of the broker (cst_…)", v.cfg.Issuer, oneLine(err))
}

// oneLine words an error that may hold what the provider answered.
func oneLine(err error) string {
	return fmt.Sprintf("%.200s", strings.Join(strings.Fields(err.Error()), " "))
}

func (v *verifier) user(c claims) (string, error) {
	var name string
	if json.Unmarshal(c[v.cfg.UserClaim], &name) != nil || name == "" {
		return "", refuse(access.NoRole, "the token has no claim %s, which holds the user's name here: ask the site's operator", v.cfg.UserClaim)
	}
	var verified bool
	if v.cfg.UserClaim == "email" && (json.Unmarshal(c["email_verified"], &verified) != nil || !verified) {
		return "", refuse(access.NoRole, "the provider has not verified the address in email: it could be another one's; verify it there")
	}
	if !access.ValidUser(name) {
		return "", refuse(access.NoRole, "%.80q, of claim %s, cannot be a user's name here: that has %s", name,
			v.cfg.UserClaim, access.UserForm)
	}
	return name, nil
}

func (v *verifier) role(user string, c claims) (access.Role, error) {
	role := v.cfg.roleOf(texts(c[v.cfg.RoleClaim]))
	if role == "" {
		return "", refuse(access.NoRole, "no value of claim %s gives %s a role at this site: ask its operator", v.cfg.RoleClaim, user)
	}
	return role, nil
}

// Why a signature is not the provider's.
var (
	errNotSigned = errors.New("not signed by an algorithm that may sign")
	errForged    = errors.New("wrong signature")
)

// payload returns what the provider has signed, by which key. The error is one of those above, or that of keys.find.
func (v *verifier) payload(text string) ([]byte, signer, error) {
	allowed := make([]jose.SignatureAlgorithm, len(v.cfg.Algorithms))
	for i, a := range v.cfg.Algorithms {
		allowed[i] = jose.SignatureAlgorithm(a)
	}
	signed, err := jose.ParseSignedCompact(text, allowed)
	if err != nil || !isCanonical(text) {
		return nil, signer{}, errNotSigned
	}
	header := signed.Signatures[0].Header
	known, err := v.keys.find(header.KeyID)
	if err != nil {
		return nil, signer{}, err
	}
	for _, key := range slices.DeleteFunc(known, func(k jose.JSONWebKey) bool {
		return k.Algorithm != "" && k.Algorithm != header.Algorithm
	}) {
		if payload, err := signed.Verify(key); err == nil {
			by, err := signerOf(header.KeyID, key)
			return payload, by, err
		}
	}
	return nil, signer{}, errForged
}

// isCanonical reports whether a token is the only text of what it holds: base64 decoders pass over ends of lines, and
// over bits of the last letter.
func isCanonical(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		_, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || strings.ContainsAny(part, "\r\n") {
			return false
		}
	}
	return true
}
