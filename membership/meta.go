package membership

import (
	"encoding/binary"
	"fmt"
)

const (
	// MaxAddress bounds an address in the metadata, in bytes: a full DNS name
	// and a port.
	MaxAddress = 259
	// MaxMeta bounds the encoded metadata, in bytes; it is memberlist's limit.
	MaxMeta = 512

	metaVersion = 1
	flagLeaving = 1
)

// meta is what travels with a member:
//
//	version 1 byte · flags 1 byte · federation 16 bytes · incarnation uvarint ·
//	http, peer: uvarint length and bytes
//
// There is exactly one encoding of each value, and nothing may follow it. A new
// field is a new version, which all members must read before one may send it.
type meta struct {
	Meta
	federation  [16]byte
	incarnation uint64
	leaving     bool // said before a graceful leave: what ends now has left, and is not dead
}

func (m Meta) validate() error {
	for _, a := range []string{m.HTTP, m.Peer} {
		if err := checkAddress(a); err != nil {
			return fmt.Errorf("%w: metadata: %w", ErrConfig, err)
		}
	}
	full := meta{Meta: m, incarnation: 1<<64 - 1}
	if n := len(full.encode()); n > MaxMeta {
		return fmt.Errorf("%w: metadata has %d bytes, more than %d: use shorter host names", ErrConfig, n, MaxMeta)
	}
	return nil
}

func checkAddress(s string) error {
	if s == "" {
		return nil
	}
	if len(s) > MaxAddress {
		return fmt.Errorf("address has %d bytes, more than %d", len(s), MaxAddress)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fmt.Errorf("address %q has a byte that is no visible ASCII", s)
		}
	}
	_, _, err := splitAddress(s, 1)
	return err
}

func (m *meta) encode() []byte {
	b := make([]byte, 0, 64+len(m.HTTP)+len(m.Peer))
	var flags byte
	if m.leaving {
		flags |= flagLeaving
	}
	b = append(b, metaVersion, flags)
	b = append(b, m.federation[:]...)
	b = binary.AppendUvarint(b, m.incarnation)
	for _, s := range []string{m.HTTP, m.Peer} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// decodeMeta reads what encode wrote. It keeps nothing of b.
func decodeMeta(b []byte) (meta, error) {
	var m meta
	const fixed = 2 + len(m.federation)
	switch {
	case len(b) > MaxMeta:
		return m, fmt.Errorf("%w: %d bytes, more than %d", ErrMeta, len(b), MaxMeta)
	case len(b) < fixed:
		return m, fmt.Errorf("%w: %d bytes are too few", ErrMeta, len(b))
	case b[0] != metaVersion:
		return m, fmt.Errorf("%w: version %d, this broker reads %d", ErrMeta, b[0], metaVersion)
	case b[1]&^flagLeaving != 0:
		return m, fmt.Errorf("%w: unknown flags %#x", ErrMeta, b[1])
	}
	m.leaving = b[1]&flagLeaving != 0
	copy(m.federation[:], b[2:])
	rest := b[fixed:]
	var err error
	if m.incarnation, rest, err = uvarint(rest); err != nil {
		return m, err
	}
	if m.HTTP, rest, err = address(rest); err != nil {
		return m, err
	}
	if m.Peer, rest, err = address(rest); err != nil {
		return m, err
	}
	if len(rest) != 0 {
		return m, fmt.Errorf("%w: %d bytes follow its end", ErrMeta, len(rest))
	}
	return m, nil
}

// uvarint takes a number in its shortest form.
func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, fmt.Errorf("%w: bad number", ErrMeta)
	}
	return v, b[n:], nil
}

func address(b []byte) (string, []byte, error) {
	n, rest, err := uvarint(b)
	if err != nil {
		return "", nil, err
	}
	if n > uint64(len(rest)) {
		return "", nil, fmt.Errorf("%w: address is cut off", ErrMeta)
	}
	s := string(rest[:n])
	if err := checkAddress(s); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrMeta, err)
	}
	return s, rest[n:], nil
}
