package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

const (
	// maxSought bounds the bytes of which a Reader computes checksums while it looks for whole records behind damage:
	// each byte may look like the beginning of a record.
	maxSought = 1 << 30
	minSought = 64 // what the least of them costs
)

// Damage is a stretch of a file that is not what was written. Stream.Next returns it as an error, and goes on behind.
type Damage struct {
	File     string
	Exported bool  // the file was exported: somebody may have changed it
	From, To int64 // bytes of the file; To is the beginning of a whole record, or the end
	// Exact: each record in it ends where its length says, so that the next one is no part of one. Else it was looked
	// for, and what is found may stand within an entry, where whoever wrote that has put it.
	Exact bool

	what string
}

// Error implements error.
func (d *Damage) Error() string {
	return fmt.Sprintf("%s: byte %d: %v%s", d.File, d.From, ErrDamaged, d.what)
}

// Unwrap returns ErrDamaged.
func (*Damage) Unwrap() error { return ErrDamaged }

// Passable returns the damage that an error reports, nil unless it is of a broker's own segment: a disk makes it, and
// nobody gains by it, since what is missing is a gap.
func Passable(err error) *Damage {
	var d *Damage
	if !errors.As(err, &d) || d.Exported {
		return nil
	}
	return d
}

// resync goes on behind a record that is damaged: where the next whole one is.
func (r *Reader) resync() *Damage {
	d := &Damage{From: r.at, To: r.size}
	if next, ok := r.behind(r.at); ok && (next == r.size || r.whole(next, anyKind)) {
		d.To, d.Exact = next, true
	} else if at, ok := r.seek(r.at + 1); ok {
		d.To = at
	}
	r.at = d.To
	r.in.Reset(io.NewSectionReader(r.src, r.at, r.size-r.at))
	return d
}

// anyKind takes all kinds; foundKinds those that are taken where a record was looked for: a state stands at the
// beginning of a segment only, and what looks like one may be part of an entry.
const (
	anyKind    = "sbetz"
	foundKinds = "etz"
)

// behind returns where a record ends by its own length.
func (r *Reader) behind(at int64) (next int64, ok bool) {
	_, head, n, ok := r.head(at)
	next = at + int64(head) + n + crc32.Size
	return next, ok && next <= r.size
}

// head reads a record's kind and length.
func (r *Reader) head(at int64) (k Kind, size int, length int64, ok bool) {
	var b [1 + binary.MaxVarintLen64]byte
	n, err := r.src.ReadAt(b[:min(int64(len(b)), max(0, r.size-at))], at)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, 0, false
	}
	count, bytes := binary.Uvarint(b[1:n])
	return Kind(b[0]), 1 + bytes, int64(count & (1<<40 - 1)), bytes > 0 && count <= uint64(mostOf(KindEntry))
}

// whole reports whether a whole record of one of some kinds stands at a byte.
func (r *Reader) whole(at int64, kinds string) bool {
	k, head, n, ok := r.head(at)
	end := at + int64(head) + n + crc32.Size
	if !ok || !isOneOf(k, kinds) || n > int64(mostOf(k)) || end > r.size {
		return false
	}
	if r.sought += n + minSought; r.sought > maxSought {
		return false
	}
	if r.buf == nil {
		r.buf = make([]byte, chunk)
	}
	sum := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(r.src, at, int64(head)+n), r.buf); err != nil {
		return false
	}
	var tail [crc32.Size]byte
	_, err := r.src.ReadAt(tail[:], end-crc32.Size)
	return (err == nil || errors.Is(err, io.EOF)) && binary.LittleEndian.Uint32(tail[:]) == sum.Sum32()
}

func isOneOf(k Kind, kinds string) bool { return strings.IndexByte(kinds, byte(k)) >= 0 }

// seek returns the next byte from some on at which a whole record stands; false: there is none, or too much was looked
// at already.
func (r *Reader) seek(from int64) (at int64, ok bool) {
	b := make([]byte, chunk)
	for ; from < r.size && r.sought <= maxSought; from += int64(len(b)) {
		n, _ := r.src.ReadAt(b, from) // what cannot be read is not found
		for i := range n {
			if isOneOf(Kind(b[i]), foundKinds) && r.whole(from+int64(i), foundKinds) {
				return from + int64(i), true
			}
		}
	}
	return 0, false
}
