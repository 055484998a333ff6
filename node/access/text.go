package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// Prefix begins the text of every token.
const Prefix = "cst_"

// Bytes and letters of the parts of a text: cst_ID_SECRET_CRC. One with a pin has the pin's bytes before those of the
// checksum, in the same last part: cst_ID_SECRET_PINCRC.
const (
	idBytes, idLetters         = 5, 8
	secretBytes, secretLetters = 32, 52
	checkLetters               = 7
	bodyLetters                = len(Prefix) + idLetters + 1 + secretLetters + 1
	textLetters                = bodyLetters + checkLetters // without a pin
)

// Errors of texts. None shows a part of the text.
var (
	// ErrNoToken reports a text that is no token at all.
	ErrNoToken = errors.New("this is no token: one begins with " + Prefix)
	// ErrMistyped reports a token of which letters are missing or changed.
	ErrMistyped = errors.New("the token is mistyped: letters are missing or changed; copy it again, whole")
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newText returns the ID and the text of a new token.
func newText() (id, text string) {
	var random [idBytes + secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	id = letters.EncodeToString(random[:idBytes])
	body := Prefix + id + "_" + letters.EncodeToString(random[idBytes:]) + "_"
	return id, armor.Encode(body, nil)
}

// Check reports whether a text may be a token of some broker: ErrNoToken, ErrMistyped or nil.
func Check(text string) error {
	_, _, err := Split(text)
	return err
}

// Pin is the SHA-256 of the public key (the SubjectPublicKeyInfo) of the certificate that a token's broker shows. It is
// no secret, and no part of what proves a token.
type Pin = [sha256.Size]byte

// WithPin returns the text of a token with a pin in it, or without one if it is nil. An earlier one goes.
func WithPin(text string, pin *Pin) (string, error) {
	bare, _, err := Split(text)
	if err != nil || pin == nil {
		return bare, err
	}
	return armor.Encode(bare[:bodyLetters], pin[:]), nil
}

// Split returns the text of a token as it is sent to its broker, and its pin, nil if it has none. Spaces, line breaks,
// quotes and capitals, which others put into it, do not matter.
func Split(text string) (bare string, pin *Pin, err error) {
	if len(text) > armor.MaxText {
		return "", nil, ErrNoToken
	}
	text = armor.Clean(text)
	if !strings.HasPrefix(text, Prefix) {
		return "", nil, ErrNoToken
	}
	if len(text) < textLetters {
		return "", nil, ErrMistyped
	}
	body := text[:bodyLetters]
	rest, err := armor.Decode(body, text)
	id, secret, _ := strings.Cut(strings.TrimSuffix(body[len(Prefix):], "_"), "_")
	if err != nil || len(id) != idLetters || len(secret) != secretLetters {
		return "", nil, ErrMistyped
	}
	switch len(rest) {
	case 0:
		return text, nil, nil
	case len(Pin{}):
		return armor.Encode(body, nil), (*Pin)(rest), nil
	}
	return "", nil, ErrMistyped
}

// parse returns the ID of a text and the hash that is kept of it, whatever its pin.
func parse(text string) (id string, hash [sha256.Size]byte, err error) {
	bare, _, err := Split(text)
	if err != nil {
		return "", hash, err
	}
	return bare[len(Prefix) : len(Prefix)+idLetters], sha256.Sum256([]byte(bare)), nil
}
