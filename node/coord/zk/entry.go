package zk

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
//	version 1 · uvarint date · uvarint n · n bytes header · uvarint parts · uvarint n · n bytes batch or nothing · crc32c of all that
//
// The date is the lead's, in milliseconds, for people; the header names the calls
// (package relay). The server refuses requests of more than a megabyte, by closing
// the connection: a longer batch stands in parts of their own, written before.

const (
	entryVersion = 1
	// maxPart is what one request carries of a batch or a snapshot, in bytes.
	maxPart = 600 << 10
	// maxParts bounds what a reader asks for.
	maxParts = relay.MaxCallBytes/maxPart + 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errEntry = errors.New("not an entry as it was written")

// entry is a decoded znode of the log.
type entry struct {
	at     time.Time
	header []byte
	parts  int // 0: the batch is here
	batch  []byte
}

// encodeEntry returns the znode's data and the parts that go before it.
func encodeEntry(at time.Time, header, batch []byte) (data []byte, parts [][]byte) {
	for rest := batch; len(batch) > maxPart && len(rest) > 0; {
		n := min(len(rest), maxPart)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	if len(parts) > 0 {
		return sealEntry(at, header, parts, nil), parts
	}
	return sealEntry(at, header, nil, batch), nil
}

// sealEntry writes an entry whose batch is here, or in parts.
func sealEntry(at time.Time, header []byte, parts [][]byte, here []byte) []byte {
	data := make([]byte, 0, 32+len(header)+len(here))
	data = append(data, entryVersion)
	data = binary.AppendUvarint(data, uint64(at.UnixMilli()))
	data = binary.AppendUvarint(data, uint64(len(header)))
	data = append(data, header...)
	data = binary.AppendUvarint(data, uint64(len(parts)))
	data = binary.AppendUvarint(data, uint64(len(here)))
	data = append(data, here...)
	sum := crc32.Checksum(data, castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return binary.BigEndian.AppendUint32(data, sum)
}

// decodeEntry reads a znode's data; the parts are still to be checked.
func decodeEntry(b []byte) (e entry, err error) {
	if len(b) < 5 {
		return e, fmt.Errorf("%w: %d bytes", errEntry, len(b))
	}
	body := b[:len(b)-4]
	d := relay.NewDecoder(body)
	if v := d.Byte(); v != entryVersion {
		return e, fmt.Errorf("%w: format %d, this version knows %d", errEntry, v, entryVersion)
	}
	e.at = time.UnixMilli(int64(d.Uvarint()))
	e.header = d.Bytes(len(body))
	e.parts = int(min(d.Uvarint(), maxParts+1))
	e.batch = d.Bytes(len(body))
	switch {
	case !d.Done() || e.parts > maxParts:
		return e, fmt.Errorf("%w: it cannot be decoded", errEntry)
	case e.parts == 0:
		return e, e.check(b, nil)
	}
	return e, nil
}

// check compares the sum over the znode's data and the parts.
func (e *entry) check(data []byte, parts [][]byte) error {
	body := data[:len(data)-4]
	sum := crc32.Checksum(body, castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	if sum != binary.BigEndian.Uint32(data[len(body):]) {
		return fmt.Errorf("%w: its checksum does not fit", errEntry)
	}
	return nil
}
