package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Whoever has the ensemble's password, and the ensemble itself, can write what they like. So what counts is signed by
// the site that wrote it, for the lineage of the tree: nothing of another tree, or of another place in this one, is
// right here.

// Purposes of signatures; see signature.Message.
const (
	SignedEntry    = "cloudshare zookeeper entry 1"
	SignedSnapshot = "cloudshare zookeeper snapshot 1"
	SignedLead     = "cloudshare zookeeper lead 1"
)

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// signed is what a site signs of its entry.
func (e *Entry) signed(lineage [16]byte, n uint64) [][]byte {
	batch := sha256.Sum256(e.Batch)
	return [][]byte{lineage[:], number(n), number(uint64(e.At.UnixMilli())), e.Header, batch[:]}
}

// Sign makes the entry a site's, under a number of a lineage's log; key is the one that by signs with.
func (e *Entry) Sign(lineage [16]byte, n uint64, site string, key signature.Key, by command.Signer) {
	e.Site, e.Signature = site, signature.Signature(by(SignedEntry, e.signed(lineage, n)...))
	e.proven = key
}

// IsBy reports whether the holder of a key has signed the entry under a number of a lineage's log. That is worked out
// once for one key, some 65 µs: lineage and number of an entry are always the same.
func (e *Entry) IsBy(lineage [16]byte, n uint64, key signature.Key) bool {
	if key == (signature.Key{}) || e.Site == "" {
		return false
	}
	if e.proven != key && key.Verify(e.Signature[:], SignedEntry, e.signed(lineage, n)...) {
		e.proven = key
	}
	return e.proven == key
}

// signed is what a site signs of a snapshot: all but the signature.
func (p Pointer) signed(lineage [16]byte) [][]byte {
	p.Signature = nil
	return [][]byte{lineage[:], Encode(p)}
}

// Sign makes the snapshot a site's.
func (p *Pointer) Sign(lineage [16]byte, site string, by command.Signer) {
	p.By = site
	p.Signature = by(SignedSnapshot, p.signed(lineage)...)
}

// IsBy reports whether the holder of a key has signed the snapshot.
func (p Pointer) IsBy(lineage [16]byte, key signature.Key) bool {
	return key.Verify(p.Signature, SignedSnapshot, p.signed(lineage)...)
}

// signed is what a site signs of the leadership: all but the signature.
func (r LeadRecord) signed(lineage [16]byte) [][]byte {
	r.Signature = ""
	return [][]byte{lineage[:], Encode(r)}
}

// Sign makes the record a site's.
func (r *LeadRecord) Sign(lineage [16]byte, site string, by command.Signer) {
	r.By = site
	r.Signature = hex.EncodeToString(by(SignedLead, r.signed(lineage)...))
}

// IsBy reports whether the holder of a key has signed the record.
func (r LeadRecord) IsBy(lineage [16]byte, key signature.Key) bool {
	signed, err := hex.DecodeString(r.Signature)
	return err == nil && key.Verify(signed, SignedLead, r.signed(lineage)...)
}

// Sum is a chunk's SHA-256.
type Sum []byte

// SumOf returns a chunk's.
func SumOf(chunk []byte) Sum {
	sum := sha256.Sum256(chunk)
	return sum[:]
}
