package openid

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// IDPrefix begins the ID of a token of the provider, in lists, logs and the record.
const IDPrefix = "oidc:"

// Tokens are a broker's own tokens, and beside them those of the identity provider. All methods may be called from any
// goroutine.
type Tokens struct {
	*access.Store
	verifier verifier
	verified *memory
}

// New adds the tokens of a provider to a broker's own. The provider is asked when the first of its tokens comes. The
// configuration must be valid.
func New(c Config, own *access.Store) *Tokens {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Tokens{Store: own, verifier: verifier{c, newKeys(c.Issuer, c.Now)}, verified: newMemory(c.Now)}
}

// Find returns what the text of a token stands for. Its errors are those of access.Store and *access.Refusal.
func (t *Tokens) Find(text string) (access.Token, error) {
	if text = strings.TrimSpace(text); !LooksLike(text) {
		return t.Store.Find(text)
	}
	hash, id := sha256.Sum256([]byte(text)), idOf(text)
	if v, ok := t.verified.get(id); ok && v.hash == hash && t.verifier.cfg.Now().Before(v.until) {
		return t.current(v.token)
	}
	token, by, err := t.verifier.verify(text)
	if err != nil {
		return access.Token{}, err
	}
	token.ID = id
	t.verified.add(verified{hash, token, by, t.verifier.keys.staleAt()})
	return token, nil
}

// idOf returns the ID of a token: of what is signed. Whoever has a token can make other signatures of some algorithms
// from its own.
func idOf(text string) string {
	signed := text[:strings.LastIndexByte(text, '.')]
	hash := sha256.Sum256([]byte(signed))
	return IDPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(hash[:10]))
}

// Valid reports whether a token that was found before has not ended.
func (t *Tokens) Valid(id string) bool {
	if !strings.HasPrefix(id, IDPrefix) {
		return t.Store.Valid(id)
	}
	_, err := t.ByID(id)
	return err == nil
}

// ByID returns a token that was found before, if the provider still has the key that signed it. Its errors are those of
// access.Store and *access.Refusal.
func (t *Tokens) ByID(id string) (access.Token, error) {
	if !strings.HasPrefix(id, IDPrefix) {
		return t.Store.ByID(id)
	}
	v, ok := t.verified.get(id)
	if !ok {
		return access.Token{}, access.ErrUnknown
	}
	if token, err := t.current(v.token); err != nil || t.verifier.cfg.Now().Before(v.until) {
		return token, err
	}
	switch err := t.verifier.keys.has(v.by); {
	case errors.Is(err, errNoKey):
		return access.Token{}, access.ErrExpired
	case err != nil:
		return access.Token{}, t.verifier.explain(err)
	}
	t.verified.extend(v, t.verifier.keys.staleAt())
	return v.token, nil
}

func (t *Tokens) current(token access.Token) (access.Token, error) {
	if !t.verifier.cfg.Now().Before(token.Expires) {
		return access.Token{}, access.ErrExpired
	}
	return token, nil
}
