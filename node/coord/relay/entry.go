package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Beside the encoded fsm.Batch of an entry stands a header
// that the state never sees: the term the lead stamped, and whose calls the
// commands are, so that every member resolves its own proposals by position,
// without decoding the batch a second time.
//
//	version 1 · uvarint term · uvarint n · n × (8 bytes origin · uvarint seq · uvarint commands)

const headerVersion = 1

// ErrHeader is said of bytes that are no header of this version.
var ErrHeader = errors.New("malformed entry header")

// call names one Propose call: the origin is a random number of the Log
// instance, the sequence number counts its calls.
type call struct {
	origin, seq uint64
	commands    int
}

// Header says of an entry which term's lead stamped it, and whose calls it holds.
type Header struct {
	Term  uint64
	calls []call
}

// Append encodes the header.
func (h *Header) Append(dst []byte) []byte {
	dst = append(dst, headerVersion)
	dst = binary.AppendUvarint(dst, h.Term)
	dst = binary.AppendUvarint(dst, uint64(len(h.calls)))
	for _, c := range h.calls {
		dst = binary.BigEndian.AppendUint64(dst, c.origin)
		dst = binary.AppendUvarint(dst, c.seq)
		dst = binary.AppendUvarint(dst, uint64(c.commands))
	}
	return dst
}

// Commands is how many commands the entry holds.
func (h *Header) Commands() (n int) {
	for _, c := range h.calls {
		n += c.commands
	}
	return n
}

// ParseHeader reads what Append wrote. into is reused.
func ParseHeader(b []byte, into *Header) error {
	if len(b) == 0 || b[0] != headerVersion {
		return fmt.Errorf("%w: no version %d header", ErrHeader, headerVersion)
	}
	d := decoder{b: b[1:]}
	into.Term = d.uvarint()
	n := d.count(MaxEntryCommands+1, 10)
	into.calls = into.calls[:0]
	for range n {
		c := call{origin: d.uint64(), seq: d.uvarint()}
		c.commands = int(min(d.uvarint(), MaxCallCommands+1))
		into.calls = append(into.calls, c)
	}
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("%w: %d bytes", ErrHeader, len(b))
	}
	return nil
}

// decoder reads bounded values; after the first fault it is bad and returns
// zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint64() uint64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// count reads a number of things of at least size bytes each.
func (d *decoder) count(limit, size int) int {
	v := d.uvarint()
	if v > uint64(limit) || v*uint64(size) > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(v)
}

// bytes returns a slice of the input, not a copy.
func (d *decoder) bytes(limit int) []byte {
	n := d.count(limit, 1)
	if d.bad {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) fail() { d.bad, d.b = true, nil }
