package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"
)

const (
	// version begins the sealed part. It is no byte of JSON text, so it also ends the public part.
	version  = 1
	idSize   = 16
	markSize = sha256.Size
	tagSize  = 16
	// Overhead is how many bytes longer a payload is than its two texts.
	Overhead = 1 + idSize + markSize + tagSize
)

// Errors of this package.
var (
	// ErrNotSealed: a payload has no sealed part, or not a whole one.
	ErrNotSealed = errors.New("the payload is not sealed as brokers seal it")
	// ErrOtherSecret: a payload was not sealed with this site's secret.
	ErrOtherSecret = errors.New("the payload was sealed with another secret than this site has")
	// ErrOtherKey: a key does not open a payload.
	ErrOtherKey = errors.New("the key does not open the payload")
)

// Secret is a site's own: all its payloads are sealed by it. It never leaves the site.
type Secret [32]byte

// Key opens one payload, and all that are equal to it.
type Key [32]byte

// Mark says which key opens a payload. No two keys have the same one.
type Mark [markSize]byte

// Whose says whose payloads they are: what was sealed for one is not opened for another.
type Whose struct {
	Federation [16]byte
	Site       string
}

// Sealer seals one site's payloads. It is safe for concurrent use.
type Sealer struct {
	whose Whose
	macs  sync.Pool // of hash.Hash under the secret
	older []*Sealer // of the secrets that it has replaced; they open only
	// last is what was sealed last: jobs that are submitted together often run the same.
	last atomic.Pointer[sealed]
}

// sealed is a payload with its text. Both are never changed.
type sealed struct{ text, payload []byte }

// is reports whether the payload is that of two texts.
func (s *sealed) is(public, text []byte) bool {
	return s != nil && bytes.Equal(s.text, text) && bytes.Equal(Public(s.payload), public)
}

// New returns the sealer of a site.
func New(secret Secret, whose Whose) *Sealer {
	return &Sealer{whose: whose, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, secret[:]) }}}
}

// mac returns the HMAC of some parts under the secret.
func (s *Sealer) mac(parts ...[]byte) (sum [sha256.Size]byte) {
	h, _ := s.macs.Get().(hash.Hash) // New made it
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	s.macs.Put(h)
	return sum
}

// What begins each input of a hash, so that none is taken for another.
var (
	idDomain   = []byte("cloudshare payload id 1\x00")
	keyDomain  = []byte("cloudshare payload key 1\x00")
	markDomain = []byte("cloudshare payload mark 1\x00")
	sealDomain = []byte("cloudshare payload 1\x00")
)

// bound returns what a sealed text is bound to, but for its id.
func (w Whose) bound(public []byte) []byte {
	b := make([]byte, 0, len(sealDomain)+len(w.Federation)+1+len(w.Site)+4+len(public)+idSize)
	b = append(append(b, sealDomain...), w.Federation[:]...)
	b = append(append(b, byte(len(w.Site))), w.Site...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(public)))
	return append(b, public...)
}

// nonce is the same for all keys: no key ever seals two texts.
var nonce [12]byte

// aead never fails: the key has the right length.
func (k *Key) aead() cipher.AEAD {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		panic("a key of 32 bytes is refused: " + err.Error())
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		panic("GCM is refused: " + err.Error())
	}
	return a
}

// mark returns the mark of what a key opens.
func (k *Key) mark() Mark {
	b := make([]byte, 0, len(markDomain)+len(k))
	return sha256.Sum256(append(append(b, markDomain...), k[:]...))
}

// Opens reports whether a key is the one of a mark.
func (k *Key) Opens(m Mark) bool {
	own := k.mark()
	return subtle.ConstantTimeCompare(own[:], m[:]) == 1
}

// Seal returns a payload: the public text, which must be text as JSON is, and the sealed one. It must not be changed.
func (s *Sealer) Seal(public, text []byte) []byte {
	last := s.last.Load()
	if !last.is(public, text) {
		last = &sealed{bytes.Clone(text), s.seal(public, text)}
		s.last.Store(last)
	}
	return last.payload
}

func (s *Sealer) seal(public, text []byte) []byte {
	bound := s.whose.bound(public)
	id := s.mac(idDomain, bound, text)
	key := s.keyOf(id[:idSize])
	mark := key.mark()
	out := make([]byte, 0, len(public)+len(text)+Overhead)
	out = append(append(out, public...), version)
	out = append(append(out, id[:idSize]...), mark[:]...)
	return key.aead().Seal(out, nonce[:], text, append(bound, id[:idSize]...))
}

func (s *Sealer) keyOf(id []byte) Key { return s.mac(keyDomain, id) }

// Key returns the key of a payload that was sealed with this secret, or one that it has replaced, else ErrNotSealed or
// ErrOtherSecret.
func (s *Sealer) Key(payload []byte) (Key, error) {
	p, err := parse(payload)
	if err != nil {
		return Key{}, err
	}
	key := s.keyOf(p.id)
	if !key.Opens(p.mark) {
		return s.olderKey(&p)
	}
	return key, nil
}

// Open returns both texts of a payload of this site.
func (s *Sealer) Open(payload []byte) (public, text []byte, err error) {
	key, err := s.Key(payload)
	if err == nil {
		text, err = s.whose.Open(payload, key)
	}
	return Public(payload), text, err
}

// Outsider reads what everybody may.
type Outsider struct{}

// Open returns the public text of a payload, and no other.
func (Outsider) Open(payload []byte) (public, text []byte, err error) {
	return Public(payload), nil, nil
}

// Whose returns whose payloads it seals.
func (s *Sealer) Whose() Whose { return s.whose }

// Open returns the sealed text of a payload of that site.
func (w Whose) Open(payload []byte, key Key) ([]byte, error) {
	p, err := parse(payload)
	if err != nil {
		return nil, err
	}
	if !key.Opens(p.mark) {
		return nil, ErrOtherKey
	}
	text, err := key.aead().Open(make([]byte, 0, len(p.box)), nonce[:], p.box, append(w.bound(p.public), p.id...))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or is another's than site %.63q's", ErrOtherKey, w.Site)
	}
	return text, nil
}

// parts of a payload; they point into it.
type parts struct {
	public, id, box []byte
	mark            Mark
}

func parse(payload []byte) (p parts, err error) {
	at := bytes.IndexByte(payload, version)
	if at < 0 || len(payload)-at < Overhead {
		return p, ErrNotSealed
	}
	rest := payload[at+1:]
	p.public, p.id = payload[:at], rest[:idSize]
	p.mark, p.box = Mark(rest[idSize:idSize+markSize]), rest[idSize+markSize:]
	return p, nil
}

// Public returns the public text of a payload, all of it if it is not sealed. It points into the payload.
func Public(payload []byte) []byte {
	if at := bytes.IndexByte(payload, version); at >= 0 {
		return payload[:at]
	}
	return payload
}

// MarkOf returns which key opens a payload, or ErrNotSealed.
func MarkOf(payload []byte) (Mark, error) {
	p, err := parse(payload)
	return p.mark, err
}
