// Package armor writes secrets and keys as one word that people send, copy and paste: a prefix that says what it
// is, and base32 in lower case of the bytes and their checksum. Reading takes back what mail and chat programs do
// to long words, and says which of three things is wrong; it never shows a part of the text, which may be a secret.
package armor

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
)

// MaxText bounds the bytes of a text that is read, with what a chat window adds.
const MaxText = 8 << 10

// Errors of texts.
var (
	// ErrKind reports a text that does not begin with the prefix that is wanted, or is longer than MaxText.
	ErrKind = errors.New("another kind of text")
	// ErrDamaged reports a text that was cut off or changed on its way.
	ErrDamaged = errors.New("letters are missing or changed: copy it again, whole")
)

const checksum = 4

var (
	letters    = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Encode returns the text of some bytes; the prefix is in lower case.
func Encode(prefix string, b []byte) string {
	sum := crc32.Update(crc32.Checksum([]byte(prefix), castagnoli), castagnoli, b)
	return prefix + letters.EncodeToString(binary.BigEndian.AppendUint32(append([]byte(nil), b...), sum))
}

// Decode returns the bytes of a text. Spaces, line breaks, quotes and capitals, which others put into it, do not
// matter.
func Decode(prefix, text string) ([]byte, error) {
	if len(text) > MaxText {
		return nil, ErrKind
	}
	body, found := strings.CutPrefix(Clean(text), prefix)
	if !found {
		return nil, ErrKind
	}
	b, err := letters.AppendDecode(nil, []byte(body))
	if err != nil || len(b) < checksum || !isEncoding(body, b) {
		return nil, ErrDamaged
	}
	end := len(b) - checksum
	sum := crc32.Update(crc32.Checksum([]byte(prefix), castagnoli), castagnoli, b[:end])
	if binary.BigEndian.Uint32(b[end:]) != sum {
		return nil, ErrDamaged
	}
	return b[:end:end], nil
}

// isEncoding reports whether a body is what bytes are written as, and not another one that is read as them.
func isEncoding(body string, b []byte) bool {
	var buf [256]byte // of most texts: each request brings a token
	return string(letters.AppendEncode(buf[:0], b)) == body
}

// Clean returns a text in lower case, without what mail and chat programs put around and into long words.
func Clean(text string) string {
	if isClean(text) {
		return text
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '"', '\'', '`', '<', '>', '\u00a0', '\u200b', '\u2060', '\ufeff':
			return -1
		}
		return r
	}, text))
}

// isClean reports whether a text is as Encode writes it, as nearly all are.
func isClean(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
