package fsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// snapReader reads what snapWriter wrote. It never trusts a number: every count is bounded, and memory grows with
// bytes that were really read. After the first fault all reads return zeros.
type snapReader struct {
	in      *bufio.Reader
	hash    hash.Hash
	seen    []byte // read but not yet hashed
	err     error
	classes []*class
	loads   []*payload
	labels  []command.Labels
	known   map[command.Labels]bool // those in labels
	fresh   map[*class]freshness    // see freshAgain
	busy    map[int32]bool          // of the sites asked about: whether they have a chore
}

func newSnapReader(in io.Reader) *snapReader {
	return &snapReader{
		in: bufio.NewReaderSize(in, 256<<10), hash: sha256.New(),
		known: map[command.Labels]bool{}, fresh: map[*class]freshness{}, busy: map[int32]bool{},
	}
}

// fail records the first fault.
func (r *snapReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrBadSnapshot}, args...)...)
	}
}

// check fails with the text what if ok is false.
func (r *snapReader) check(ok bool, what string) {
	if !ok {
		r.fail("%s", what)
	}
}

func (r *snapReader) byte() byte {
	if r.err != nil {
		return 0
	}
	b, err := r.in.ReadByte()
	if err != nil {
		r.fail("read: %v", err)
		return 0
	}
	if r.seen = append(r.seen, b); len(r.seen) >= 32<<10 {
		r.drain()
	}
	return b
}

// drain hashes what was read.
func (r *snapReader) drain() {
	r.hash.Write(r.seen)
	r.seen = r.seen[:0]
}

// uint reads a varint in its shortest form, the only form that is written.
func (r *snapReader) uint() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if shift == 63 && b > 1 || shift > 0 && b == 0 {
			r.fail("a number is too long")
		}
		if r.err != nil {
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// int reads a zigzag varint.
func (r *snapReader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

// upTo reads a number ≤ most.
func (r *snapReader) upTo(most uint64, what string) uint64 {
	v := r.uint()
	if v > most {
		r.fail("%s %d exceeds %d", what, v, most)
		return 0
	}
	return v
}

// within reads a number in [low, high].
func (r *snapReader) within(low, high int64, what string) int64 {
	v := r.int()
	if r.err == nil && (v < low || v > high) {
		r.fail("%s %d is not in %d…%d", what, v, low, high)
	}
	if r.err != nil {
		return low
	}
	return v
}

func (r *snapReader) bool() bool { return r.upTo(1, "flag") == 1 }

func (r *snapReader) u32(what string) uint32 { return uint32(r.upTo(1<<32-1, what)) }

func (r *snapReader) i32(what string) int32 {
	return int32(r.within(-1<<31, 1<<31-1, what))
}

// ms reads a log time, or −1 where that stands for "not yet".
func (r *snapReader) ms(low int64, now int64) int64 { return r.within(low, now, "log time") }

func (r *snapReader) id() (v [16]byte) {
	r.fixed(v[:], "id")
	return v
}

func (r *snapReader) hash32() (v [32]byte) {
	r.fixed(v[:], "hash")
	return v
}

// fixed fills v.
func (r *snapReader) fixed(v []byte, what string) {
	if r.err != nil {
		return
	}
	if _, err := io.ReadFull(r.in, v); err != nil {
		r.fail("read %s: %v", what, err)
	}
	r.seen = append(r.seen, v...)
}

// blob reads at most most bytes.
func (r *snapReader) blob(most uint64, what string) []byte {
	n := r.upTo(most, "length of "+what)
	if n == 0 || r.err != nil {
		return nil
	}
	var data []byte
	var err error
	if n <= 4096 {
		data = make([]byte, n)
		_, err = io.ReadFull(r.in, data)
	} else { // grows with what is there, not with what is announced
		var b bytes.Buffer
		_, err = io.CopyN(&b, r.in, int64(n))
		data = b.Bytes()
	}
	if err != nil {
		r.fail("read %s: %v", what, err)
		return nil
	}
	if r.seen = append(r.seen, data...); len(r.seen) >= 32<<10 {
		r.drain()
	}
	return data
}

func (r *snapReader) text(most uint64, what string) string { return string(r.blob(most, what)) }

func (r *snapReader) res() (v command.Resources) {
	v.MilliCPU, v.MemMiB, v.GPU = r.int(), r.int(), r.int()
	if r.err == nil && command.CheckResources("", v) != nil {
		r.fail("%v", command.CheckResources("", v))
	}
	return v
}

func (r *snapReader) names() []string {
	n := r.upTo(command.MaxSiteNames, "sites")
	var out []string
	for range n {
		out = append(out, r.text(63, "site"))
	}
	if r.err == nil && command.CheckSites("sites", out) != nil {
		r.fail("%v", command.CheckSites("sites", out))
	}
	return out
}

// finish checks the trailing SHA-256 and that nothing follows.
func (r *snapReader) finish() {
	r.drain()
	want := r.hash.Sum(nil)
	got := make([]byte, sha256.Size)
	if r.err != nil {
		return
	}
	if _, err := io.ReadFull(r.in, got); err != nil {
		r.fail("read checksum: %v", err)
		return
	}
	r.check(bytes.Equal(got, want), "checksum differs: the bytes are damaged")
	_, err := r.in.ReadByte()
	r.check(err == io.EOF, "bytes after the checksum")
}
