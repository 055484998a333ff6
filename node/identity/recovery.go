package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// recoveryPrefix begins the text of a recovery key.
const recoveryPrefix = "csr_"

// ErrNoRecovery reports a text that is no recovery key.
var ErrNoRecovery = errors.New("that is no recovery key")

// NewRecovery makes a recovery key: the one that replaces a site's key when that was lost or stolen. The text is
// to be kept away from the broker's machine.
func NewRecovery() (Key, string) {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:]) // never fails
	return FromSeed(seed), RecoveryText(seed)
}

// RecoveryText returns the text of a recovery key's seed: 62 letters.
func RecoveryText(seed [ed25519.SeedSize]byte) string { return armor.Encode(recoveryPrefix, seed[:]) }

// ParseRecovery reads the text of a recovery key. No error shows a part of it.
func ParseRecovery(text string) (Key, error) {
	b, err := armor.Decode(recoveryPrefix, text)
	if errors.Is(err, armor.ErrKind) || err == nil && len(b) != ed25519.SeedSize {
		err = errors.New("one begins with " + recoveryPrefix)
	}
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrNoRecovery, err)
	}
	return FromSeed([ed25519.SeedSize]byte(b)), nil
}
