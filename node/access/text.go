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

// Bytes and letters of the parts of a text: cst_ID_SECRET_CRC.
const (
	idBytes, idLetters         = 5, 8
	secretBytes, secretLetters = 32, 52
	checkLetters               = 7
	textLetters                = len(Prefix) + idLetters + 1 + secretLetters + 1 + checkLetters
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
	_, _, err := parse(text)
	return err
}

// parse returns the ID of a text and the hash that is kept of it. Spaces, line breaks, quotes and capitals, which
// others put into it, do not matter.
func parse(text string) (id string, hash [sha256.Size]byte, err error) {
	if len(text) > armor.MaxText {
		return "", hash, ErrNoToken
	}
	text = armor.Clean(text)
	if !strings.HasPrefix(text, Prefix) {
		return "", hash, ErrNoToken
	}
	if len(text) != textLetters {
		return "", hash, ErrMistyped
	}
	body := text[:textLetters-checkLetters]
	rest, err := armor.Decode(body, text)
	id, secret, _ := strings.Cut(strings.TrimSuffix(body[len(Prefix):], "_"), "_")
	if err != nil || len(rest) != 0 || len(id) != idLetters || len(secret) != secretLetters {
		return "", hash, ErrMistyped
	}
	return id, sha256.Sum256([]byte(text)), nil
}
