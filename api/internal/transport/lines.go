package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// lineBuffer is how many bytes of lines are read at a time.
const lineBuffer = 64 << 10

// Lines are those of an NDJSON body.
type Lines struct {
	bodies *Bodies
	body   *deadlineReader
	split  lineReader
}

// Lines begins to read a body line by line; Close must be called.
func (b *Bodies) Lines(w http.ResponseWriter, r *http.Request) (*Lines, error) {
	if r.ContentLength > b.lines {
		return nil, tooLarge(b.lines)
	}
	body := b.newDeadlineReader(w, r, b.lines)
	return &Lines{b, body, lineReader{in: bufio.NewReaderSize(body, lineBuffer), most: int(b.most)}}, nil
}

// Next returns the next line, valid until the call after it, without its end; io.EOF
// after the last one; or the problem of a line that is too long, or of the body.
func (l *Lines) Next() ([]byte, error) {
	text, err := l.split.next()
	if l.split.failed {
		err = l.bodies.wordError(err, l.bodies.lines)
	}
	return text, err
}

// Failed reports whether the body cannot be read on: the last line says why.
func (l *Lines) Failed() bool { return l.split.failed }

// Whole is called once all of the body has come: its deadline is taken back.
func (l *Lines) Whole() { l.body.stop() }

// Close gives up what is still to come.
func (l *Lines) Close() { l.body.finish() }

// lineReader splits a body into lines.
type lineReader struct {
	in     *bufio.Reader
	most   int // bytes of a line
	long   []byte
	failed bool // the body cannot be read on
}

// next returns the next line, valid until the call after it, without its end.
// A line beyond most is skipped and gives a problem.
func (l *lineReader) next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return l.trimLine(text, err)
	}
	l.long = append(l.long[:0], text...)
	tooLong := false
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.in.ReadSlice('\n')
		if tooLong = tooLong || len(l.long)+len(text) > l.most+1; !tooLong {
			l.long = append(l.long, text...)
		}
	}
	if tooLong && (err == nil || errors.Is(err, io.EOF)) {
		return nil, problem.New(http.StatusRequestEntityTooLarge, "too-large", "The line is too large",
			"a job may have "+strconv.Itoa(l.most)+" bytes")
	}
	return l.trimLine(l.long, err)
}

// trimLine trims a line; an unended last line is a line, an error comes after it.
func (l *lineReader) trimLine(text []byte, err error) ([]byte, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		l.failed = true
		return nil, err
	}
	if err != nil && len(text) == 0 {
		return nil, io.EOF
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}
