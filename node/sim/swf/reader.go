package swf

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of a log. A Problem with one line is reported, not returned.
var (
	// ErrTruncated: the file ends in the middle of its compressed data.
	ErrTruncated = errors.New("the compressed file is cut off or damaged: fetch it again")
	// ErrEmpty: not a single job could be read.
	ErrEmpty = errors.New("no job in the log")
	// ErrMalformed: more than MaxProblems lines are not as the format wants them.
	ErrMalformed = errors.New("too many malformed lines: is it in the Standard Workload Format, plain or gzipped?")

	errNotNumber = errors.New("not a number")
	errNotWhole  = errors.New("not a whole number")
)

const (
	// MaxLine bounds a line in bytes; a longer one is a problem, and skipped.
	MaxLine = 64 << 10
	// MaxProblems bounds the lines that are reported and passed over; what has more
	// is no log, and a list of them might fill the disk.
	MaxProblems = 1_000_000
	// maxHeader bounds the header lines that are kept.
	maxHeader = 10_000
)

// Problem is a line that is not as the format wants it.
type Problem struct {
	File string
	Line int    // from 1
	What string // what is wrong
	Done string // what was done about it
}

// String is "file:line: what: done".
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.What, p.Done)
}

// Reader reads a log job by job, in the order of its lines, in constant memory.
type Reader struct {
	name     string
	plain    io.Reader // the log, uncompressed
	in       *bufio.Reader
	err      error // why there is nothing to read
	line     int
	jobs     int
	problems int
	report   func(Problem)
	header   []string
	buf      []byte
}

// NewReader reads a log, plain or gzipped (found by its first bytes). name is
// the file's, for messages; report hears of every malformed line, nil drops them.
func NewReader(src io.Reader, name string, report func(Problem)) *Reader {
	r := &Reader{name: name, report: report}
	plain, err := unzip(src)
	if err != nil {
		r.err = r.wrap(err)
		return r
	}
	r.plain = plain
	r.in = bufio.NewReaderSize(plain, 64<<10)
	return r
}

// CopyTo has the whole log, uncompressed, also written to dst as it is read: for
// its hash. REQUIRES: nothing was read yet.
func (r *Reader) CopyTo(dst io.Writer) {
	if r.err == nil {
		r.in = bufio.NewReaderSize(io.TeeReader(r.plain, dst), 64<<10) // r.in may be r.plain itself
	}
}

// unzip returns the content of src, uncompressed if it is gzipped (found by its
// first bytes).
func unzip(src io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		return gzip.NewReader(in)
	}
	return in, nil
}

// Next returns the next job, io.EOF after the last one. Any other error names
// file and line; nothing can be read after it. A log without jobs is ErrEmpty, one
// of more than MaxProblems malformed lines ErrMalformed.
func (r *Reader) Next() (Job, error) {
	for r.err == nil {
		if r.problems > MaxProblems {
			r.err = fmt.Errorf("%s:%d: %w", r.name, r.line, ErrMalformed)
			break
		}
		line, long, err := r.readLine()
		if err != nil {
			r.err = r.wrap(err)
			break
		}
		switch text := bytes.TrimSpace(line); {
		case long:
			r.problem(fmt.Sprintf("longer than %d bytes", MaxLine), "skipped")
		case len(text) == 0:
		case text[0] == ';':
			r.keepHeader(text)
		default:
			if j, ok := r.parse(text); ok {
				r.jobs++
				return j, nil
			}
		}
	}
	return Job{}, r.err
}

// wrap words the end of the input.
func (r *Reader) wrap(err error) error {
	switch {
	case errors.Is(err, io.EOF) && r.jobs == 0:
		return fmt.Errorf("%s:%d: %w: is it in the Standard Workload Format, plain or gzipped?", r.name, r.line, ErrEmpty)
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader),
		errors.As(err, new(flate.CorruptInputError)):
		return fmt.Errorf("%s:%d: %w", r.name, r.line+1, ErrTruncated)
	}
	return fmt.Errorf("%s:%d: read log: %w", r.name, r.line+1, err)
}

// readLine returns the next line, valid until the next call; of a long one only
// the beginning.
func (r *Reader) readLine() (line []byte, long bool, err error) {
	part, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		part, long, err = r.readLong(part)
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(part) == 0) {
		return nil, false, err
	}
	r.line++
	return part, long, nil
}

// readLong goes on with a line that is longer than the buffer.
func (r *Reader) readLong(part []byte) (line []byte, long bool, err error) {
	r.buf = append(r.buf[:0], part...)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		part, err = r.in.ReadSlice('\n')
		if len(r.buf) <= MaxLine {
			r.buf = append(r.buf, part...)
		}
	}
	return r.buf, len(r.buf) > MaxLine, err
}

// parse reads a job line.
func (r *Reader) parse(text []byte) (Job, bool) {
	var j Job
	n := 0
	for f := range strings.FieldsSeq(string(text)) {
		if n == Fields {
			r.problem(fmt.Sprintf("more than %d fields", Fields), "the rest of the line was ignored")
			return j, true
		}
		if err := j.set(n, f); err != nil {
			r.problem(err.Error(), "skipped")
			return j, false
		}
		n++
	}
	if n < Fields {
		r.problem(fmt.Sprintf("%d fields, want %d", n, Fields), "skipped")
		return j, false
	}
	return j, true
}

func (r *Reader) problem(what, done string) {
	r.problems++
	if r.report != nil {
		r.report(Problem{r.name, r.line, what, done})
	}
}

func (r *Reader) keepHeader(text []byte) {
	if len(r.header) < maxHeader {
		r.header = append(r.header, string(text))
	}
}

// Field returns a header field such as "MaxProcs", and whether it is there.
func (r *Reader) Field(name string) (string, bool) {
	for _, line := range r.header {
		key, value, ok := strings.Cut(strings.TrimLeft(line, "; \t"), ":")
		if ok && strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// Jobs returns how many jobs were read so far.
func (r *Reader) Jobs() int { return r.jobs }

// Problems returns how many malformed lines there were so far.
func (r *Reader) Problems() int { return r.problems }

// Line returns the number of the line read last, from 1.
func (r *Reader) Line() int { return r.line }
