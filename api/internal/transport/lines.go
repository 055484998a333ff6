package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// lineBuffer is how many bytes of lines are read at a time.
const lineBuffer = 64 << 10

// Lines are those of an NDJSON body. What it holds is counted for its sender: the buffers, and what its user makes of
// the lines.
type Lines struct {
	bodies *Bodies
	body   *deadlineReader
	split  lineReader
	bytes  *share
}

// Lines begins to read a body line by line; Close must be called.
func (b *Bodies) Lines(w http.ResponseWriter, r *http.Request) (*Lines, error) {
	if r.ContentLength > b.lines {
		return nil, tooLarge(b.lines)
	}
	l := &Lines{bodies: b, bytes: b.held.shareOf(r.Context())}
	if err := l.Hold(lineBuffer); err != nil {
		w.Header().Set("Connection", "close") // net/http must not wait for the body
		return nil, err
	}
	l.body = b.newDeadlineReader(w, r, b.lines)
	l.split = lineReader{in: bufio.NewReaderSize(l.body, lineBuffer), most: int(b.most), hold: l.Hold}
	return l, nil
}

// Hold counts bytes that wait with the body, or says why there may be no more. Hold, Take and Drop may be called from
// any goroutine.
func (l *Lines) Hold(n int) error { return l.bytes.grow(n) }

// Take counts bytes that wait already, and reports whether they are more than there may be: whoever made them must wait
// for others to be dropped.
func (l *Lines) Take(n int) (over bool) { return l.bytes.take(n) }

// Drop counts bytes no more.
func (l *Lines) Drop(n int) { l.bytes.drop(n) }

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

// Close gives up what is still to come, and counts nothing any more.
func (l *Lines) Close() {
	l.body.finish()
	l.bytes.release()
}

// lineReader splits a body into lines.
type lineReader struct {
	in     *bufio.Reader
	most   int // bytes of a line
	long   []byte
	failed bool // the body cannot be read on
	// hold counts what long takes.
	hold    func(bytes int) error
	refused error // why long may not grow
}

// next returns the next line, valid until the call after it, without its end.
// A line beyond most is skipped and gives a problem.
func (l *lineReader) next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return l.trimLine(text, err)
	}
	if l.long = l.long[:0]; !l.append(text) {
		return nil, l.refused
	}
	tooLong := false
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.in.ReadSlice('\n')
		if tooLong = tooLong || len(l.long)+len(text) > l.most+1; !tooLong && !l.append(text) {
			return nil, l.refused
		}
	}
	if tooLong && (err == nil || errors.Is(err, io.EOF)) {
		return nil, problem.New(http.StatusRequestEntityTooLarge, "too-large", "The line is too large",
			"a job may have "+strconv.Itoa(l.most)+" bytes")
	}
	return l.trimLine(l.long, err)
}

// append adds to a long line; false: it may not grow, and the body is not read on.
func (l *lineReader) append(text []byte) bool {
	before := cap(l.long)
	l.long = slices.Grow(l.long, len(text))
	if more := cap(l.long) - before; more > 0 {
		l.refused = l.hold(more)
		l.failed = l.refused != nil
	}
	l.long = append(l.long, text...)
	return !l.failed
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
