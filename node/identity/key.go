package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// Public is the key by which others know a site.
type Public [ed25519.PublicKeySize]byte

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

// Node returns the id of the key's node: what names a data directory in the state, in members' files and in
// invitations. Nobody finds another key with the same id (2¹²⁸ tries).
func (p Public) Node() [16]byte {
	sum := sha256.Sum256(append([]byte("cloudshare node 1\n"), p[:]...))
	return [16]byte(sum[:])
}

// Verify reports whether the key's holder has signed parts for a purpose; see Message.
func (p Public) Verify(sig []byte, purpose string, parts ...[]byte) bool {
	return len(sig) == ed25519.SignatureSize && ed25519.Verify(p[:], Message(purpose, parts...), sig)
}

// Message returns what is signed: the purpose and the parts, each behind its length in four bytes, so that what
// was signed for one purpose, or cut in one way, is nothing else.
func Message(purpose string, parts ...[]byte) []byte {
	n := 4 + len(purpose)
	for _, p := range parts {
		n += 4 + len(p)
	}
	b := make([]byte, 0, n)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(purpose))), purpose...)
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
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

// Sign signs parts for a purpose; see Message.
func (k Key) Sign(purpose string, parts ...[]byte) []byte {
	return ed25519.Sign(k.private, Message(purpose, parts...))
}

// Format implements fmt.Formatter: whatever the verb, only the public half is printed.
func (k Key) Format(f fmt.State, _ rune) {
	if k.private == nil {
		_, _ = f.Write([]byte("no key"))
		return
	}
	_, _ = f.Write([]byte("secret key of " + k.Public().String()))
}
