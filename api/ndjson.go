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
}

// submitLines answers every input line with one result line, in order.
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

	results := newPending(maxPending)
	chunks := make(chan []line)
	var stages sync.WaitGroup
	stages.Go(func() {
		s.writeResults(w, out, results)
		cancel() // after the last result, or when the client is gone
	})
	stages.Go(func() {
		defer results.close()
		s.submitChunks(ctx, chunks, results)
	})
	in := s.newDeadlineReader(w, http.MaxBytesReader(w, r.Body, s.cfg.MaxLines))
	s.readLines(ctx, in, key, strict, chunks)
	close(chunks)
	stages.Wait()
	in.stop()
	_ = out.SetWriteDeadline(time.Time{})
	return nil
}

// readLines sends chunks of what has arrived: a slow client's line is not kept
// waiting for a full chunk, a fast one's go a thousand at a time.
func (s *Server) readLines(ctx context.Context, in io.Reader, key string, strict bool, chunks chan<- []line) {
	lines := lineReader{in: bufio.NewReaderSize(in, lineBuffer), most: int(s.cfg.MaxBody)}
	var chunk []line
	for n := 1; ; n++ {
		text, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		l := line{err: err}
		if err == nil {
			lineKey := ""
			if key != "" {
				lineKey = key + "/" + strconv.Itoa(n)
			}
			l.req, l.err = request(text, lineKey, strict)
		} else if !errors.Is(err, errLongLine) {
			l.err = s.bodyError(err, s.cfg.MaxLines) // the body ends here: say why in a last line
		}
		chunk = append(chunk, l)
		if len(chunk) < chunkLines && lines.in.Buffered() > 0 && !lines.failed {
			continue
		}
		if !send(ctx, chunks, &chunk, len(chunk) >= chunkLines || lines.failed) || lines.failed {
			return
		}
	}
	if len(chunk) > 0 {
		send(ctx, chunks, &chunk, true)
	}
}

// send hands the chunk over and empties it; without must, only if the
// submitter is free, else more lines join it. It reports false when ctx ended.
func send(ctx context.Context, chunks chan<- []line, chunk *[]line, must bool) bool {
	if !must {
		select {
		case chunks <- *chunk:
			*chunk = nil
		default:
		}
		return ctx.Err() == nil
	}
	select {
	case chunks <- *chunk:
		*chunk = nil
		return true
	case <-ctx.Done():
		return false
	}
}

// submitChunks turns lines into results.
func (s *Server) submitChunks(ctx context.Context, chunks <-chan []line, results *pending) {
	n := 0
	var buf []byte
	for chunk := range chunks {
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
			n++
			a := node.Answer{Err: l.err}
			if l.err == nil {
				a, answers = answers[0], answers[1:]
			}
			buf = s.appendResult(buf, a, n)
		}
		if !results.put(buf) {
			for range chunks { //nolint:revive // the reader must not block on a client that is gone
			}
			return
		}
	}
}

// appendResult writes a result line: an acceptance or a problem.
func (s *Server) appendResult(b []byte, a node.Answer, n int) []byte {
	if a.Err == nil {
		s.metrics.accepted.Inc()
		return appendAccepted(b, a)
	}
	s.metrics.refused.Inc()
	p := s.logged(a.Err)
	p.Line = n
	body, err := json.Marshal(p.Problem)
	if err != nil {
		body = []byte("{}")
	}
	return append(append(b, body...), '\n')
}

// writeResults writes as fast as the client takes them.
func (s *Server) writeResults(w io.Writer, out *http.ResponseController, results *pending) {
	defer results.abandon()
	for {
		buf, more := results.take()
		if len(buf) > 0 {
			_ = out.SetWriteDeadline(time.Now().Add(s.cfg.BodyTimeout)) // not every connection has one
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
		return nil, &longLine{newProblem(http.StatusRequestEntityTooLarge, "too-large", "The line is too large",
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
type longLine struct{ *problem }

func (e *longLine) Unwrap() []error { return []error{errLongLine, e.problem} }

// pending is the bounded buffer of results between submitter and writer.
type pending struct {
	mu        sync.Mutex
	changed   *sync.Cond
	buf       []byte
	most      int
	closed    bool // no more results will come
	abandoned bool // nobody takes results any more
}

func newPending(most int) *pending {
	p := &pending{most: most}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// put adds results once there is room; false means that nobody takes them.
func (p *pending) put(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) > 0 && len(p.buf)+len(b) > p.most && !p.abandoned {
		p.changed.Wait()
	}
	p.buf = append(p.buf, b...)
	p.changed.Broadcast()
	return !p.abandoned
}

// take waits for results and returns all there are; more is false on the last.
func (p *pending) take() (b []byte, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.closed {
		p.changed.Wait()
	}
	b, p.buf = p.buf, nil
	p.changed.Broadcast()
	return b, !p.closed
}

func (p *pending) close()   { p.set(&p.closed) }
func (p *pending) abandon() { p.set(&p.abandoned) }

func (p *pending) set(flag *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*flag = true
	p.changed.Broadcast()
}
