// Package signature says what exactly a site's key signs, the same for those who sign and for the replicated state
// that verifies.
//
//	signature.Message("admission", federation, site, key)
//	= u32 9 "admission" · u32 16 federation · u32 5 "lab-2" · u32 32 key
//
// The purpose and each part stand behind their lengths, so that what was signed for one purpose, or cut in one way,
// is nothing else. Ed25519 as RFC 8032 has it; it needs no randomness, so every replica finds the same.
package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
)

// Key is an Ed25519 public key. The zero Key stands for none.
type Key [ed25519.PublicKeySize]byte

// Signature is one by such a key.
type Signature [ed25519.SignatureSize]byte

// Message returns what is signed for a purpose.
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

// Verify reports whether the key's holder has signed parts for a purpose. It takes some 65 µs.
func (k Key) Verify(sig []byte, purpose string, parts ...[]byte) bool {
	return len(sig) == len(Signature{}) && ed25519.Verify(k[:], Message(purpose, parts...), sig)
}

// Node returns the id of the key's node: what names a data directory in the state, in members' files and in
// invitations. Nobody finds another key with the same id (2¹²⁸ tries).
func (k Key) Node() [16]byte {
	sum := sha256.Sum256(append([]byte("cloudshare node 1\n"), k[:]...))
	return [16]byte(sum[:])
}
