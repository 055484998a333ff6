package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// An NDJSON submission is three stages side by side: read and parse lines,
// submit what has arrived (one chunk under way, so that order stays), and
// write results. A client that sends everything before it reads anything is
// fine while its results fit into maxPending.
const (
	chunkLines = 1000     // lines of one Submit
	lineBuffer = 64 << 10 // bytes read at a time
	maxPending = 16 << 20 // bytes of results that wait for the client
)

// line is one input line: a request, or why it is none.
type line struct {
	req node.Request
	err error
	num uint32 // from 1, blank lines counted
}

// submitLines answers every input line that is not blank with one result line, in
// order.
func (s *Server) submitLines(w http.ResponseWriter, r *http.Request, key string, strict bool) error {
	if r.ContentLength > s.cfg.MaxLines {
		return s.tooLarge(s.cfg.MaxLines)
	}
	out := http.NewResponseController(w)
	_ = out.EnableFullDuplex() // HTTP/2 always has it
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", wire.TypeNDJSON)
	w.WriteHeader(http.StatusAccepted)

	lines, results := newPending[line](chunkLines), newPending[byte](maxPending)
	var stages sync.WaitGroup
	stages.Go(func() {
		s.writeResults(w, out, results)
		cancel() // after the last result, or when the client is gone
	})
	stages.Go(func() { s.submitChunks(ctx, lines, results) })
	in := s.newDeadlineReader(w, http.MaxBytesReader(w, r.Body, s.cfg.MaxLines))
	defer in.over()
	whole := s.readLines(in, key, strict, lines)
	lines.close()
	stages.Wait()
	if whole { // else the rest of the body must not be waited for
		in.stop()
	}
	_ = out.SetWriteDeadline(time.Time{})
	return nil
}

// readLines parses ahead of the submitter, which takes what has arrived: a
// slow client's line is not kept waiting for a full chunk, a fast one's go a
// thousand at a time. It reports whether the body was read to its end.
func (s *Server) readLines(in io.Reader, key string, strict bool, lines *pending[line]) (whole bool) {
	split := lineReader{in: bufio.NewReaderSize(in, lineBuffer), most: int(s.cfg.MaxBody)}
	for n := uint32(1); !split.failed; n++ {
		text, err := split.next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			continue // blank: no job, and no result
		}
		l := line{err: err, num: n}
		switch {
		case err == nil:
			l.req, l.err = request(text, key, strict)
			l.req.Line = n
		case !errors.Is(err, errLongLine): // the body ends here: the last line says why
			l.err = s.bodyError(err, s.cfg.MaxLines)
		}
		if !lines.put(l) {
			return false
		}
	}
	return false
}

// submitChunks turns lines into results, until there are no more or nobody
// takes them.
func (s *Server) submitChunks(ctx context.Context, lines *pending[line], results *pending[byte]) {
	defer results.close()
	defer lines.abandon()
	var buf []byte
	for more := true; more; {
		var chunk []line
		chunk, more = lines.take()
		reqs := make([]node.Request, 0, len(chunk))
		for _, l := range chunk {
			if l.err == nil {
				reqs = append(reqs, l.req)
			}
		}
		var answers []node.Answer
		if len(reqs) > 0 {
			answers = s.broker.Submit(ctx, reqs)
		}
		buf = buf[:0]
		for _, l := range chunk {
			a := node.Answer{Err: l.err}
			if l.err == nil {
				a, answers = answers[0], answers[1:]
			}
			buf = s.appendResult(buf, a, int(l.num))
		}
		if !results.put(buf...) {
			return
		}
	}
}

// appendResult writes a result line: an acceptance or a problem.
func (s *Server) appendResult(b []byte, a node.Answer, n int) []byte {
	if a.Err == nil {
		s.metrics.accepted.Inc()
		return appendAccepted(b, a, a.Replayed)
	}
	s.metrics.refused.Inc()
	p := problem.Logged(s.log, a.Err)
	p.Line = n
	body, err := json.Marshal(p.Problem)
	if err != nil {
		body = []byte("{}")
	}
	return append(append(b, body...), '\n')
}

// writeResults writes as fast as the client takes them.
func (s *Server) writeResults(w io.Writer, out *http.ResponseController, results *pending[byte]) {
	defer results.abandon()
	for {
		buf, more := results.take()
		if len(buf) > 0 {
			if _, err := w.Write(buf); err != nil {
				return
			}
			if err := out.Flush(); err != nil {
				return
			}
		}
		if !more {
			return
		}
	}
}

// errLongLine is a line beyond the bound of one body.
var errLongLine = errors.New("line too long")

// lineReader splits a body into lines.
type lineReader struct {
	in     *bufio.Reader
	most   int // bytes of a line
	long   []byte
	failed bool // the body cannot be read on
}

// next returns the next line, valid until the call after it, without its end.
// A line beyond most is skipped and gives a problem that wraps errLongLine.
func (l *lineReader) next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return l.end(text, err)
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
		return nil, &longLine{problem.New(http.StatusRequestEntityTooLarge, "too-large", "The line is too large",
			"a job may have "+strconv.Itoa(l.most)+" bytes")}
	}
	return l.end(l.long, err)
}

// end trims a line; an unended last line is a line, an error comes after it.
func (l *lineReader) end(text []byte, err error) ([]byte, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		l.failed = true
		return nil, err
	}
	if err != nil && len(text) == 0 {
		return nil, io.EOF
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// longLine is the problem of one line, and errLongLine for the reader.
type longLine struct{ *problem.Problem }

func (e *longLine) Unwrap() []error { return []error{errLongLine, e.Problem} }

// pending is a bounded buffer between two stages.
type pending[T any] struct {
	mu        sync.Mutex
	changed   *sync.Cond
	buf       []T
	most      int
	closed    bool // no more will come
	abandoned bool // nobody takes any more
}

func newPending[T any](most int) *pending[T] {
	p := &pending[T]{most: most}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// put adds items once there is room; false means that nobody takes them.
func (p *pending[T]) put(items ...T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) > 0 && len(p.buf)+len(items) > p.most && !p.abandoned {
		p.changed.Wait()
	}
	if len(p.buf) == 0 {
		p.changed.Broadcast()
	}
	p.buf = append(p.buf, items...)
	return !p.abandoned
}

// take waits for items and returns all there are; more is false on the last.
func (p *pending[T]) take() (items []T, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.closed {
		p.changed.Wait()
	}
	items, p.buf = p.buf, nil
	p.changed.Broadcast()
	return items, !p.closed
}

func (p *pending[T]) close()   { p.set(&p.closed) }
func (p *pending[T]) abandon() { p.set(&p.abandoned) }

func (p *pending[T]) set(flag *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*flag = true
	p.changed.Broadcast()
}
