package command

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// reader reads data[pos:end]. After the first error it returns zeros.
type reader struct {
	data     []byte
	pos, end int
	err      error
	// sites are the site names seen last: most commands repeat a few of them.
	sites [4]string
	next  uint8
}

// fail records the first error, with its cause if there is one, and leaves nothing to read.
func (r *reader) fail(cause error, format string, args ...any) {
	if r.err != nil {
		return
	}
	r.err = fmt.Errorf("%w at byte %d: %s", ErrFormat, r.pos, fmt.Sprintf(format, args...))
	if cause != nil {
		r.err = fmt.Errorf("%w at byte %d: %w", ErrFormat, r.pos, cause)
	}
	r.pos, r.end = 0, 0
}

// list reads a length and that many elements, each of which takes at least least bytes. An empty list
// is nil.
func list[T any](r *reader, what string, most, least int, read func(*reader, *T)) []T {
	n := r.count(what, most, least)
	if n == 0 {
		return nil
	}
	items := make([]T, n)
	for i := range items {
		if read(r, &items[i]); r.err != nil {
			return nil
		}
	}
	return items
}

// count reads a length of at most most, and refuses it if that many cannot fit into the rest of the input.
func (r *reader) count(what string, most, least int) int {
	n := r.uint(what, uint64(most))
	if left := r.end - r.pos; n > uint64(left/least) {
		r.fail(nil, "%s: %d do not fit into the %d bytes left", what, n, left)
		return 0
	}
	return int(n)
}

// bytes reads bytes, which alias the input.
func (r *reader) bytes(what string, most int) []byte {
	n := r.count(what, most, 1)
	if n == 0 {
		return nil
	}
	r.pos += n
	return r.data[r.pos-n : r.pos : r.pos]
}

func (r *reader) string(what string, most int) string { return string(r.bytes(what, most)) }

// site reads a site's name; Validate checks whether it is valid.
func (r *reader) site() string {
	b := r.bytes("site", 63)
	for i := range r.sites {
		if string(b) == r.sites[i] { // compares without allocating
			return r.sites[i]
		}
	}
	s := string(b)
	r.sites[r.next%uint8(len(r.sites))] = s
	r.next++
	return s
}

func (r *reader) siteInto(s *string) { *s = r.site() }

func (r *reader) uuid(to *[16]byte) {
	if r.end-r.pos < len(to) {
		r.fail(nil, "a uuid takes 16 bytes, %d are left", r.end-r.pos)
		return
	}
	r.pos += copy(to[:], r.data[r.pos:])
}

// fixed reads as many bytes as there is room for.
func (r *reader) fixed(what string, to []byte) {
	if r.end-r.pos < len(to) {
		r.fail(nil, "%s takes %d bytes, %d are left", what, len(to), r.end-r.pos)
		return
	}
	r.pos += copy(to, r.data[r.pos:])
}

func (r *reader) bool(what string) bool { return r.uint(what, 1) == 1 }

// int reads a number that cannot be negative.
func (r *reader) int(what string) int64 { return int64(r.uint(what, math.MaxInt64)) }

func (r *reader) uint32(what string) uint32 { return uint32(r.uint(what, math.MaxUint32)) }

func (r *reader) signed(what string, low, high int64) int64 {
	v := protowire.DecodeZigZag(r.number())
	if v < low || v > high {
		r.fail(nil, "%s %d is not in %d…%d", what, v, low, high)
		return 0
	}
	return v
}

func (r *reader) uint(what string, most uint64) uint64 {
	v := r.number()
	if v > most {
		r.fail(nil, "%s %d is more than %d", what, v, most)
		return 0
	}
	return v
}

// number reads any varint, which must be in its shortest form.
func (r *reader) number() uint64 {
	if r.pos < r.end && r.data[r.pos] < 0x80 { // most numbers are small
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	return r.longNumber()
}

func (r *reader) longNumber() uint64 {
	v, n := protowire.ConsumeVarint(r.data[r.pos:r.end])
	switch {
	case n < 0:
		r.fail(nil, "a number is cut off or longer than 64 bits")
		return 0
	case n != protowire.SizeVarint(v):
		r.fail(nil, "a number takes %d bytes where %d would do", n, protowire.SizeVarint(v))
		return 0
	}
	r.pos += n
	return v
}
