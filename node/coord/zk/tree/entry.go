package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A znode of the log holds one entry:
//
//	version 1 · uvarint date · uvarint n · n bytes header · uvarint parts ·
//	uvarint n · n bytes batch or nothing · crc32c of all that
//
// The date is the leader's, in milliseconds, for people; the header names the calls
// (package relay). The server refuses requests of more than a megabyte, by closing
// the connection: a longer batch stands in parts of their own, written before.

const (
	entryVersion = 1
	// MaxPart is what one request carries of a batch or a snapshot, in bytes.
	MaxPart = 600 << 10
	// maxParts bounds what a reader asks for.
	maxParts = relay.MaxCallBytes/MaxPart + 2
)

// Castagnoli is the table of all checksums in the tree.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrEntry reports a znode of the log that is not as it was written.
var ErrEntry = errors.New("not an entry as it was written")

// Entry is a decoded znode of the log.
type Entry struct {
	At     time.Time
	Header []byte
	Parts  int // 0: the batch is here
	Batch  []byte
}

// EncodeEntry returns the znode's data and the parts that go before it.
func EncodeEntry(at time.Time, header, batch []byte) (data []byte, parts [][]byte) {
	for rest := batch; len(batch) > MaxPart && len(rest) > 0; {
		n := min(len(rest), MaxPart)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	if len(parts) > 0 {
		return SealEntry(at, header, parts, nil), parts
	}
	return SealEntry(at, header, nil, batch), nil
}

// SealEntry writes an entry whose batch is here, or in parts.
func SealEntry(at time.Time, header []byte, parts [][]byte, here []byte) []byte {
	data := make([]byte, 0, 32+len(header)+len(here))
	data = append(data, entryVersion)
	data = binary.AppendUvarint(data, uint64(at.UnixMilli()))
	data = binary.AppendUvarint(data, uint64(len(header)))
	data = append(data, header...)
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
