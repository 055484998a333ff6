package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// A file is a line that names the format, a Header in JSON on the second one, and records:
//
//	kind · length (uvarint) · contents · CRC-32C of all that (4 bytes, little-endian)
//
//	's'  at most 64 KiB of the state with which the segment begins: a replica's snapshot
//	'b'  number of the state's entry: the state is complete
//	'e'  number of an entry · the entry, as it was ordered
//	't'  lineage (16 bytes) · what a site has signed (compare.Statement)
//	'z'  number of the last entry · head of the chain there: nothing follows
//
// The checksums find what a disk or a copy has changed. Whoever means to change something makes them right: that is
// found by going through the file.

// Kind of a record.
type Kind byte

// The kinds.
const (
	KindState     Kind = 's'
	KindBegun     Kind = 'b'
	KindEntry     Kind = 'e'
	KindStatement Kind = 't'
	KindEnd       Kind = 'z'
)

const (
	magic      = "cloudshare history 1\n"
	maxHeader  = 4 << 10
	stateChunk = 64 << 10
	maxSmall   = 1 << 10 // bytes of a record that is neither state nor entry
	chunk      = 64 << 10
)

// Errors of reading; each stands behind the place in the file.
var (
	// ErrFormat: it is no file of this kind, or of another version.
	ErrFormat = errors.New("no history in a form that this version reads")
	// ErrTorn: it ends within a record.
	ErrTorn = errors.New("it ends within a record")
	// ErrDamaged: a record is not what was written.
	ErrDamaged = errors.New("a record is damaged")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is for people: nothing rests on it.
type Header struct {
	Site    string `json:"site"`            // whose broker has kept it
	Version string `json:"version"`         // of the program
	At      string `json:"at"`              // RFC 3339
	Whole   bool   `json:"whole,omitempty"` // it was exported, so a last record stands at its end
}

// appendHeader returns how a file begins.
func appendHeader(h Header) ([]byte, error) {
	b, err := json.Marshal(h)
	if err == nil && len(b) >= maxHeader {
		err = fmt.Errorf("header of %d bytes, at most %d", len(b), maxHeader)
	}
	return append(append([]byte(magic), b...), '\n'), err
}

// appendRecord appends a record whose contents are parts in a row.
func appendRecord(dst []byte, k Kind, parts ...[]byte) []byte {
	n, from := 0, len(dst)
	for _, p := range parts {
		n += len(p)
	}
	dst = binary.AppendUvarint(append(dst, byte(k)), uint64(n))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// Record is one of a file.
type Record struct {
	Kind     Kind
	Number   uint64 // of an entry, but for KindState and KindStatement
	Contents []byte // behind the number; the reader's caller may keep it
	// At is the byte of the file at which the record begins, End the first one behind it.
	At, End int64
}

// Reader reads the records of a file.
type Reader struct {
	Header Header

	src    io.ReaderAt
	size   int64 // of src
	in     *bufio.Reader
	at     int64
	raw    []byte // the last record, but for its checksum
	sought int64  // bytes whose checksums were computed behind damage
	buf    []byte // for those
}

const askFor = "give a file that `cloudshare audit export` wrote, or a broker's data_dir"

// NewReader reads how a file of so many bytes begins. It never reads more than it has to, and its memory grows with
// what was really read. Errors: ErrFormat; that and ErrTorn if what is there is how a file begins, and too little.
func NewReader(src io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{src: src, size: size}
	r.in = bufio.NewReaderSize(io.NewSectionReader(src, 0, size), int(min(size, 256<<10)))
	first := make([]byte, len(magic))
	n, _ := io.ReadFull(r.in, first) // what is missing shows
	switch written := string(bytes.TrimRight(first[:n], "\x00")); {
	case written == magic:
	case strings.HasPrefix(magic, written): // a loss of power leaves nothing, or zeros
		return nil, fmt.Errorf("%w: %w: %s", ErrFormat, ErrTorn, askFor)
	default:
		return nil, fmt.Errorf("%w: %s", ErrFormat, askFor)
	}
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := r.in.ReadByte()
		if err != nil || b == 0 {
			return nil, fmt.Errorf("%w: %w: its second line", ErrFormat, ErrTorn)
		}
		if len(line) > maxHeader {
			return nil, fmt.Errorf("%w: its second line is too long", ErrFormat)
		}
		line = append(line, b)
	}
	if err := json.Unmarshal(line, &r.Header); err != nil {
		return nil, fmt.Errorf("%w: its second line: %w", ErrFormat, err)
	}
	r.at = int64(len(magic) + len(line))
	return r, nil
}

// At returns the byte behind the last record.
func (r *Reader) At() int64 { return r.at }

// Next returns the next record. Errors: io.EOF at the end of the file, ErrTorn, ErrDamaged.
func (r *Reader) Next() (rec Record, err error) {
	rec.At = r.at
	k, err := r.in.ReadByte()
	if err != nil {
		return rec, err // io.EOF
	}
	rec.Kind, r.raw = Kind(k), append(r.raw[:0], k)
	n, err := binary.ReadUvarint(taping{r})
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return rec, r.fail(ErrTorn)
	case err != nil || mostOf(rec.Kind) == 0 || n > uint64(mostOf(rec.Kind)):
		return rec, r.fail(ErrDamaged)
	}
	head := len(r.raw)
	b, sum := []byte(nil), uint32(0)
	if b, sum, err = r.contents(int(n)); err != nil {
		return rec, r.fail(err)
	}
	if crc32.Update(crc32.Checksum(r.raw, castagnoli), castagnoli, b) != sum {
		return rec, r.fail(ErrDamaged)
	}
	r.at += int64(head) + int64(n) + 4
	rec.End, rec.Contents = r.at, b
	return rec, r.number(&rec)
}

// number takes the number off a record's contents.
func (r *Reader) number(rec *Record) error {
	if rec.Kind == KindState || rec.Kind == KindStatement {
		return nil
	}
	number, n := binary.Uvarint(rec.Contents)
	if n <= 0 {
		return r.fail(ErrDamaged)
	}
	rec.Number, rec.Contents = number, rec.Contents[n:]
	return nil
}

// contents reads so many bytes and a checksum, as they come.
func (r *Reader) contents(n int) (b []byte, sum uint32, err error) {
	b = make([]byte, 0, min(n, chunk))
	for len(b) < n {
		from := len(b)
		b = append(b, make([]byte, min(n-from, max(chunk, from)))...)
		if _, err = io.ReadFull(r.in, b[from:]); err != nil {
			return nil, 0, ErrTorn
		}
	}
	var tail [4]byte
	if _, err = io.ReadFull(r.in, tail[:]); err != nil {
		return nil, 0, ErrTorn
	}
	return b[:n:n], binary.LittleEndian.Uint32(tail[:]), nil
}

func (r *Reader) fail(err error) error { return fmt.Errorf("byte %d: %w", r.at, err) }

// mostOf returns how many bytes a record of a kind has at most; none of a kind that is unknown.
func mostOf(k Kind) int {
	switch k {
	case KindState:
		return stateChunk
	case KindEntry:
		return command.MaxBatch + binary.MaxVarintLen64
	case KindBegun, KindStatement, KindEnd:
		return maxSmall
	}
	return 0
}

// taping reads the bytes of a length, and remembers them.
type taping struct{ r *Reader }

// ReadByte implements io.ByteReader.
func (t taping) ReadByte() (byte, error) {
	b, err := t.r.in.ReadByte()
	if err == nil {
		t.r.raw = append(t.r.raw, b)
	}
	return b, err
}
