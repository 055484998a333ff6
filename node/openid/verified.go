package openid

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// Bounds of the tokens that are remembered as verified.
const (
	maxVerified = 10_000
	maxOfUser   = 1_000
)

// verified is a token of the provider that was proven.
type verified struct {
	hash  [sha256.Size]byte // of the token's text
	token access.Token
	by    signer
	until time.Time // then its key is looked for again: it may have been withdrawn
}

// memory holds verified tokens. All methods may be called from any goroutine.
type memory struct {
	now func() time.Time

	mu   sync.Mutex
	byID map[string]verified // guarded by mu. Invariant: at most maxVerified, and maxOfUser of each user
	of   map[string]int      // how many of byID a user has, none is 0; guarded by mu
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, byID: map[string]verified{}, of: map[string]int{}}
}

func (m *memory) get(id string) (verified, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.byID[id]
	return v, ok
}

func (m *memory) add(v verified) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(v.token.ID)
	user := v.token.User
	if m.of[user] >= maxOfUser || len(m.byID) >= maxVerified {
		m.forgetExpired()
	}
	switch {
	case m.of[user] >= maxOfUser:
		m.forgetFirst(user)
	case len(m.byID) >= maxVerified:
		m.forgetFirst(m.greatest())
	}
	m.byID[v.token.ID] = v
	m.of[user]++
}

// extend has a token that is remembered still be taken until then.
func (m *memory) extend(v verified, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byID[v.token.ID]; ok && known.hash == v.hash {
		known.until = until
		m.byID[v.token.ID] = known
	}
}

// forget removes a token, if it is known. REQUIRES: m.mu held.
func (m *memory) forget(id string) {
	v, ok := m.byID[id]
	if !ok {
		return
	}
	delete(m.byID, id)
	if m.of[v.token.User]--; m.of[v.token.User] == 0 {
		delete(m.of, v.token.User)
	}
}

// forgetExpired removes what has expired. REQUIRES: m.mu held.
func (m *memory) forgetExpired() {
	now := m.now()
	for id, v := range m.byID {
		if !now.Before(v.token.Expires) {
			m.forget(id)
		}
	}
}

// forgetFirst removes the token of a user that ends first. REQUIRES: m.mu held.
func (m *memory) forgetFirst(user string) {
	first := ""
	for id, v := range m.byID {
		if v.token.User == user && (first == "" || v.token.Expires.Before(m.byID[first].token.Expires)) {
			first = id
		}
	}
	m.forget(first)
}

// greatest returns the user who has most tokens. REQUIRES: m.mu held.
func (m *memory) greatest() (user string) {
	for u, n := range m.of {
		if n > m.of[user] || n == m.of[user] && u < user {
			user = u
		}
	}
	return user
}
