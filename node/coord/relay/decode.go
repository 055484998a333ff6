package relay

import "encoding/binary"

// Decoder reads bounded values; after the first fault it is bad and returns
// zeros.
type Decoder struct {
	b   []byte
	bad bool
}

// NewDecoder returns a decoder of b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Bad reports whether a fault was met.
func (d *Decoder) Bad() bool { return d.bad }

// Done reports whether all was read, and well.
func (d *Decoder) Done() bool { return !d.bad && len(d.b) == 0 }

// Left returns how many bytes are left.
func (d *Decoder) Left() int { return len(d.b) }

// Uvarint reads a number.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Uint64 reads eight bytes.
func (d *Decoder) Uint64() uint64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

// Byte reads one.
func (d *Decoder) Byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// Count reads a number of things of at least size bytes each.
func (d *Decoder) Count(limit, size int) int {
	v := d.Uvarint()
	if v > uint64(limit) || v*uint64(size) > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(v)
}

// Bytes returns a slice of the input, not a copy.
func (d *Decoder) Bytes(limit int) []byte {
	n := d.Count(limit, 1)
	if d.bad {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// Fixed reads n bytes: a slice of the input, not a copy.
func (d *Decoder) Fixed(n int) []byte {
	if len(d.b) < n {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// Rest returns what is left: a slice of the input, which stays to be read.
func (d *Decoder) Rest() []byte { return d.b }

func (d *Decoder) fail() { d.bad, d.b = true, nil }
