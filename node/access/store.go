package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// maxSent bounds Store.sent.
const maxSent = 1 << 14

// Store holds the tokens of one broker. All methods may be called from any goroutine.
type Store struct {
	path string
	now  func() time.Time
	made bool // the file was there when it was opened
	uses *uses

	mu     sync.RWMutex
	tokens map[string]Token // by ID; guarded by mu. Invariant: what it holds, the file holds
	// sent are the IDs of tokens that were found, by the hashes of their texts as they are sent: with a pin or without,
	// in capitals. They need not be parsed again. Guarded by mu. Invariant: at most maxSent, of right secrets only.
	sent    map[[sha256.Size]byte]string
	revoked []func(id string) // guarded by mu
	pin     *Pin              // of the texts of new tokens, nil = none; guarded by mu
}

// Open reads the tokens of a file. If there is none, the store is empty, and the first token makes it.
func Open(path string) (*Store, error) {
	s := &Store{path: path, now: time.Now, tokens: map[string]Token{}, sent: map[[sha256.Size]byte]string{}}
	data, err := readBounded(path)
	if errors.Is(err, os.ErrNotExist) {
		s.uses = openUses(usesOf(path), nil)
		return s, nil
	}
	if err == nil {
		s.tokens, err = decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the API's tokens: %s: %w; restore it from a backup, or remove it for a new operator's token", path, err)
	}
	s.made, s.uses = true, openUses(usesOf(path), s.tokens)
	return s, nil
}

// Close saves when tokens were used. The store may be used on.
func (s *Store) Close() error { return s.uses.save() }

// Create makes a token with the name, user, role and end of t. Its text, which is returned, is not kept.
func (s *Store) Create(t Token) (text string, made Token, err error) {
	t.ID, text = newText()
	made, err = s.adopt(text, t)
	if err != nil {
		return "", Token{}, err
	}
	s.mu.RLock()
	pin := s.pin
	s.mu.RUnlock()
	text, err = WithPin(text, pin)
	return text, made, err
}

// adopt keeps a token whose text was made before.
func (s *Store) adopt(text string, t Token) (Token, error) {
	t.Created, t.Expires = s.now().UTC(), t.Expires.UTC()
	if err := t.validate(); err != nil {
		return Token{}, err
	}
	_, hash, err := parse(text)
	if err != nil {
		return Token{}, err
	}
	t.hash = hash
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= MaxTokens {
		return Token{}, ErrFull
	}
	next := maps.Clone(s.tokens)
	next[t.ID] = t
	return t, s.replace(next)
}

// Find returns the token of a text, which is used by that. Its errors are ErrNoToken, ErrMistyped, ErrUnknown and
// ErrExpired.
func (s *Store) Find(text string) (Token, error) {
	var buf [128]byte // of most texts: each request brings one
	sent := sha256.Sum256(append(buf[:0], text...))
	if t, ok := s.foundBefore(sent); ok {
		return s.current(t)
	}
	id, hash, err := parse(text)
	if err != nil {
		return Token{}, err
	}
	s.mu.RLock()
	t := s.tokens[id] // none: its hash is zero, which is that of no text
	s.mu.RUnlock()
	if subtle.ConstantTimeCompare(t.hash[:], hash[:]) != 1 {
		return Token{}, ErrUnknown
	}
	s.remember(sent, id)
	return s.current(t)
}

func (s *Store) foundBefore(sent [sha256.Size]byte) (Token, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.tokens[s.sent[sent]]
	return t, ok
}

func (s *Store) remember(sent [sha256.Size]byte, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) >= maxSent {
		clear(s.sent)
	}
	s.sent[sent] = id
}

// ByID returns a token that was found before, which is used by that. Its errors are ErrUnknown and ErrExpired.
func (s *Store) ByID(id string) (Token, error) {
	s.mu.RLock()
	t, ok := s.tokens[id]
	s.mu.RUnlock()
	if !ok {
		return Token{}, ErrUnknown
	}
	return s.current(t)
}

// Valid reports whether a token that was found before has not ended. That is no use of it.
func (s *Store) Valid(id string) bool {
	s.mu.RLock()
	t, ok := s.tokens[id]
	s.mu.RUnlock()
	return ok && !t.Expired(s.now())
}

func (s *Store) current(t Token) (Token, error) {
	if t.Expired(s.now()) {
		return Token{}, ErrExpired
	}
	t.Used = s.uses.record(t.ID, s.now())
	return t, nil
}

// List returns all tokens, also expired ones, the oldest first.
func (s *Store) List() []Token {
	s.mu.RLock()
	all := sorted(s.tokens)
	s.mu.RUnlock()
	for i := range all {
		all[i].Used = s.uses.of(all[i].ID)
	}
	return all
}

func sorted(tokens map[string]Token) []Token {
	return slices.SortedFunc(maps.Values(tokens), func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// Revoke forgets a token: it is unknown from now on. The error is ErrUnknown if it is already.
func (s *Store) Revoke(id string) error {
	told, err := s.forget(id)
	if err == nil {
		s.uses.forget(id)
	}
	for _, tell := range told {
		tell(id)
	}
	return err
}

// forget removes a token, and returns who is to be told.
func (s *Store) forget(id string) (told []func(id string), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tokens[id]; !ok {
		return nil, ErrUnknown
	}
	next := maps.Clone(s.tokens)
	delete(next, id)
	if err = s.replace(next); err != nil {
		return nil, err
	}
	return s.revoked, nil
}

// OnRevoke has f called with the ID of each token that is revoked from now on, once it is unknown and before Revoke
// returns.
func (s *Store) OnRevoke(f func(id string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = append(slices.Clip(s.revoked), f)
}

// replace writes the tokens and then takes them over. REQUIRES: s.mu held.
func (s *Store) replace(next map[string]Token) error {
	text := encode(next)
	if len(text) > maxFile { // which the next start would not read
		return ErrFull
	}
	if err := wholefile.Replace(s.path, text, 0o600); err != nil {
		return fmt.Errorf("keep the API's tokens: %w", err)
	}
	s.tokens = next
	return nil
}
