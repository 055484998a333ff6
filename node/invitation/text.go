package invitation

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// A text is "csi_" and, in base32 of lower case without padding:
//
//	version · federation (16) · inviter (16) · seed (32) · length · site · number · (length · address)… · CRC-32C (4)
//
// base32 survives what chat windows do to letters, and a double click selects all of it.
const (
	prefix  = "csi_"
	version = 1

	fixed      = 1 + 16 + 16 + 32
	checksum   = 4
	maxAddress = 255 // its length is one byte
)

// Errors of texts. Each names what the reader does next.
var (
	// ErrNoInvitation reports a text that does not begin like one.
	ErrNoInvitation = errors.New("that is no invitation")
	// ErrMistyped reports a text that was cut off or changed on its way.
	ErrMistyped = errors.New("the invitation is damaged")
	// ErrVersion reports a text that a newer version has written.
	ErrVersion = errors.New("the invitation is of another version")
)

var (
	letters    = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Text returns the text of a valid Invitation: 150 to 250 bytes with one address.
func (v *Invitation) Text() (string, error) {
	if err := v.Validate(); err != nil {
		return "", err
	}
	b := append(make([]byte, 0, 256), version)
	b = append(b, v.Federation[:]...)
	b = append(b, v.Inviter[:]...)
	b = append(b, v.Seed[:]...)
	b = appendShort(b, v.Site)
	b = append(b, byte(len(v.Addresses)))
	for _, addr := range v.Addresses {
		b = appendShort(b, addr)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return prefix + letters.EncodeToString(b), nil
}

func appendShort(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

// Parse reads a text, with what may stand around it and within it once it was sent and copied: spaces, line
// breaks, quotes, capitals. It never shows any of the text, which may be a secret.
func Parse(text string) (Invitation, error) {
	if len(text) > MaxText {
		return Invitation{}, fmt.Errorf("%w: it is longer than %d bytes", ErrNoInvitation, MaxText)
	}
	body, found := strings.CutPrefix(strings.ToLower(cleaned(text)), prefix)
	if !found {
		return Invitation{}, fmt.Errorf("%w: one begins with %s; a member makes it with `cloudshare invite NAME`", ErrNoInvitation, prefix)
	}
	b, err := letters.DecodeString(body)
	if err != nil || letters.EncodeToString(b) != body || len(b) < 1+checksum {
		return Invitation{}, damaged()
	}
	end := len(b) - checksum
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return Invitation{}, damaged()
	}
	if b[0] != version {
		return Invitation{}, fmt.Errorf("%w, %d: this program reads version %d; run the one of the member that invited", ErrVersion, b[0], version)
	}
	return parseBody(b[:end])
}

func damaged() error {
	return fmt.Errorf("%w: letters are missing or changed: copy it again, whole", ErrMistyped)
}

// cleaned drops what mail and chat programs put around and into long words.
func cleaned(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '"', '\'', '`', '<', '>', '\u00a0', '\u200b', '\u2060', '\ufeff':
			return -1
		}
		return r
	}, text)
}

// parseBody reads what stands before the checksum.
func parseBody(b []byte) (v Invitation, err error) {
	if len(b) < fixed {
		return v, damaged()
	}
	copy(v.Federation[:], b[1:])
	copy(v.Inviter[:], b[17:])
	copy(v.Seed[:], b[33:])
	rest := b[fixed:]
	v.Site, rest, err = short(rest)
	if err == nil && len(rest) == 0 {
		err = damaged()
	}
	if err != nil {
		return Invitation{}, err
	}
	n, rest := int(rest[0]), rest[1:]
	for range n {
		var addr string
		if addr, rest, err = short(rest); err != nil {
			return Invitation{}, err
		}
		v.Addresses = append(v.Addresses, addr)
	}
	if len(rest) > 0 || v.Validate() != nil {
		return Invitation{}, damaged()
	}
	return v, nil
}

// short reads what appendShort has written.
func short(b []byte) (s string, rest []byte, err error) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return "", nil, damaged()
	}
	return string(b[1 : 1+b[0]]), b[1+b[0]:], nil
}
