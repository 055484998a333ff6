package invitation

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// A text is "csi_" and, in package armor's letters:
//
//	version · federation (16) · inviter (16) · seed (32) · length · site · number · (length · address)…
const (
	prefix  = "csi_"
	version = 1

	fixed      = 1 + 16 + 16 + 32
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
	return armor.Encode(prefix, b), nil
}

func appendShort(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

// Parse reads a text, with what may stand around it and within it once it was sent and copied. It never shows any
// of the text, which may be a secret.
func Parse(text string) (Invitation, error) {
	b, err := armor.Decode(prefix, text)
	switch {
	case errors.Is(err, armor.ErrKind):
		return Invitation{}, fmt.Errorf("%w: one begins with %s; a member makes it with `cloudshare invite NAME`",
			ErrNoInvitation, prefix)
	case err != nil || len(b) == 0:
		return Invitation{}, damaged()
	case b[0] != version:
		return Invitation{}, fmt.Errorf("%w, %d: this program reads version %d; run the one of the member that invited",
			ErrVersion, b[0], version)
	}
	return parseBody(b)
}

func damaged() error { return fmt.Errorf("%w: %w", ErrMistyped, armor.ErrDamaged) }

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
