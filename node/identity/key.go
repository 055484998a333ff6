package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// Public is the key by which others know a site.
type Public signature.Key

// publicPrefix begins the text of a Public.
const publicPrefix = "csk_"

// ErrNoKey reports a text that is no public key.
var ErrNoKey = errors.New("that is no public key")

// String returns the text that ParsePublic reads: 62 letters.
func (p Public) String() string { return armor.Encode(publicPrefix, p[:]) }

// ParsePublic reads the text of a key.
func ParsePublic(text string) (Public, error) {
	b, err := armor.Decode(publicPrefix, text)
	if errors.Is(err, armor.ErrKind) || err == nil && len(b) != len(Public{}) {
		err = errors.New("one begins with " + publicPrefix)
	}
	if err != nil {
		return Public{}, fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	return Public(b), nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Public) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Public) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePublic(string(text))
	return err
}

// Node returns the id of the key's node; see signature.Key.
func (p Public) Node() [16]byte { return signature.Key(p).Node() }

// Verify reports whether the key's holder has signed parts for a purpose; see signature.Message.
func (p Public) Verify(sig []byte, purpose string, parts ...[]byte) bool {
	return signature.Key(p).Verify(sig, purpose, parts...)
}

// Key is the secret half. It is not printed by any verb of package fmt.
type Key struct{ private ed25519.PrivateKey }

// Generate makes a new key.
func Generate() Key {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:]) // never fails
	return FromSeed(seed)
}

// FromSeed returns the key that a seed stands for.
func FromSeed(seed [ed25519.SeedSize]byte) Key { return Key{ed25519.NewKeyFromSeed(seed[:])} }

// Public returns the half that others may know.
func (k Key) Public() Public { return Public(k.private.Public().(ed25519.PublicKey)) }

// Sign signs parts for a purpose; see signature.Message.
func (k Key) Sign(purpose string, parts ...[]byte) []byte {
	return ed25519.Sign(k.private, signature.Message(purpose, parts...))
}

// Format implements fmt.Formatter: whatever the verb, only the public half is printed.
func (k Key) Format(f fmt.State, _ rune) {
	if k.private == nil {
		_, _ = f.Write([]byte("no key"))
		return
	}
	_, _ = f.Write([]byte("secret key of " + k.Public().String()))
}
