package openid

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// IDPrefix begins the ID of a token of the provider, in lists, logs and the record.
const IDPrefix = "oidc:"

// maxVerified bounds the tokens that are remembered as verified.
const maxVerified = 10_000

// Tokens are a broker's own tokens, and beside them those of the identity provider. All methods may be called from any
// goroutine.
type Tokens struct {
	*access.Store
	verifier verifier

	mu       sync.Mutex
	verified map[string]verified // by ID; guarded by mu. Invariant: at most maxVerified
}

type verified struct {
	hash  [sha256.Size]byte // of the token's text
	token access.Token
	until time.Time // then its signature is looked at again: the key may have been withdrawn
}

// New adds the tokens of a provider to a broker's own. The provider is asked when the first of its tokens comes. The
// configuration must be valid.
func New(c Config, own *access.Store) *Tokens {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Tokens{Store: own, verifier: verifier{c, newKeys(c.Issuer, c.Now)}, verified: map[string]verified{}}
}

// Find returns what the text of a token stands for. Its errors are those of access.Store and *access.Refusal.
func (t *Tokens) Find(text string) (access.Token, error) {
	if text = strings.TrimSpace(text); !LooksLike(text) {
		return t.Store.Find(text)
	}
	hash := sha256.Sum256([]byte(text))
	id := IDPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(hash[:10]))
	if v, ok := t.remembered(id); ok && v.hash == hash && t.verifier.cfg.Now().Before(v.until) {
		return t.current(v.token)
	}
	token, err := t.verifier.verify(text)
	if err != nil {
		return access.Token{}, err
	}
	token.ID = id
	t.remember(verified{hash, token, t.verifier.cfg.Now().Add(freshFor)})
	return token, nil
}

// ByID returns a token that was found before.
func (t *Tokens) ByID(id string) (access.Token, error) {
	if !strings.HasPrefix(id, IDPrefix) {
		return t.Store.ByID(id)
	}
	v, ok := t.remembered(id)
	if !ok {
		return access.Token{}, access.ErrUnknown
	}
	return t.current(v.token)
}

func (t *Tokens) current(token access.Token) (access.Token, error) {
	if !t.verifier.cfg.Now().Before(token.Expires) {
		return access.Token{}, access.ErrExpired
	}
	return token, nil
}

func (t *Tokens) remembered(id string) (verified, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.verified[id]
	return v, ok
}

func (t *Tokens) remember(v verified) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.verified[v.token.ID]; !known && len(t.verified) >= maxVerified {
		t.drop()
	}
	t.verified[v.token.ID] = v
}

// drop forgets what has expired, or else the token that ends first. REQUIRES: t.mu held.
func (t *Tokens) drop() {
	now, first := t.verifier.cfg.Now(), ""
	for id, v := range t.verified {
		switch {
		case !now.Before(v.token.Expires):
			delete(t.verified, id)
		case first == "" || v.token.Expires.Before(t.verified[first].token.Expires):
			first = id
		}
	}
	if len(t.verified) >= maxVerified {
		delete(t.verified, first)
	}
}
