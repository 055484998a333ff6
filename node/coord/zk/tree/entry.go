package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A znode of the log holds one entry:
//
//	version 2 · uvarint date · uvarint n · n bytes site · 64 bytes signature, if there is a site ·
//	uvarint n · n bytes header · uvarint parts · uvarint n · n bytes batch or nothing · crc32c of all that
//
// The date is the leader's, in milliseconds, for people; the header names the calls
// (package relay); the site is the leader, which signs (sign.go). The server refuses requests of
// more than a megabyte, by closing the connection: a longer batch stands in parts of their own,
// written before.

const (
	entryVersion = 2
	// MaxPart is what one request carries of a batch or a snapshot, in bytes.
	MaxPart = 600 << 10
	// maxParts bounds what a reader asks for.
	maxParts = relay.MaxCallBytes/MaxPart + 2
	maxSite  = 63 // bytes of a name
)

// Castagnoli is the table of all checksums in the tree.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrEntry reports a znode of the log that is not as it was written.
var ErrEntry = errors.New("not an entry as it was written")

// Entry is what a znode of the log holds.
type Entry struct {
	At     time.Time
	Header []byte
	Parts  int // as it was read; 0: the batch is in the znode itself
	Batch  []byte

	// Site has ordered it, and signed; "": nobody has, as where members have no keys.
	Site      string
	Signature signature.Signature
	// proven is the key by which the signature was found right. Invariant: only IsBy and Sign set it.
	proven signature.Key
}

// Encode returns the znode's data and the parts that go before it.
func (e *Entry) Encode() (data []byte, parts [][]byte) {
	for rest := e.Batch; len(e.Batch) > MaxPart && len(rest) > 0; {
		n := min(len(rest), MaxPart)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	if len(parts) > 0 {
		return e.seal(parts, nil), parts
	}
	return e.EncodeWhole(), nil
}

// EncodeWhole returns the data with the batch in it, however long it is.
func (e *Entry) EncodeWhole() []byte { return e.seal(nil, e.Batch) }

// seal writes an entry whose batch is here, or in parts.
func (e *Entry) seal(parts [][]byte, here []byte) []byte {
	data := make([]byte, 0, 128+len(e.Site)+len(e.Header)+len(here))
	data = append(data, entryVersion)
	data = binary.AppendUvarint(data, uint64(e.At.UnixMilli()))
	data = binary.AppendUvarint(data, uint64(len(e.Site)))
	if data = append(data, e.Site...); e.Site != "" {
		data = append(data, e.Signature[:]...)
	}
	data = binary.AppendUvarint(data, uint64(len(e.Header)))
	data = append(data, e.Header...)
	data = binary.AppendUvarint(data, uint64(len(parts)))
	data = binary.AppendUvarint(data, uint64(len(here)))
	data = append(data, here...)
	sum := crc32.Checksum(data, Castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, Castagnoli, p)
	}
	return binary.BigEndian.AppendUint32(data, sum)
}

// DecodeEntry reads a znode's data; the parts are still to be checked.
func DecodeEntry(b []byte) (e Entry, err error) {
	if len(b) < 5 {
		return e, fmt.Errorf("%w: %d bytes", ErrEntry, len(b))
	}
	body := b[:len(b)-4]
	d := relay.NewDecoder(body)
	if v := d.Byte(); v != entryVersion {
		return e, fmt.Errorf("%w: format %d, this version knows %d", ErrEntry, v, entryVersion)
	}
	e.At = time.UnixMilli(int64(d.Uvarint()))
	if e.Site = string(d.Bytes(maxSite)); e.Site != "" {
		copy(e.Signature[:], d.Fixed(len(e.Signature)))
	}
	e.Header = d.Bytes(len(body))
	e.Parts = int(min(d.Uvarint(), maxParts+1))
	e.Batch = d.Bytes(len(body))
	switch {
	case !d.Done() || e.Parts > maxParts:
		return e, fmt.Errorf("%w: it cannot be decoded", ErrEntry)
	case e.Parts == 0:
		return e, e.Check(b, nil)
	}
	return e, nil
}

// Check compares the sum over the znode's data and the parts.
func (e *Entry) Check(data []byte, parts [][]byte) error {
	body := data[:len(data)-4]
	sum := crc32.Checksum(body, Castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, Castagnoli, p)
	}
	if sum != binary.BigEndian.Uint32(data[len(body):]) {
		return fmt.Errorf("%w: its checksum does not fit", ErrEntry)
	}
	return nil
}
