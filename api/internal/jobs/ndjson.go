package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// An NDJSON submission is four stages side by side: read and parse lines, begin
// to submit what has arrived, await the answers, and write results. Jobs keep
// their order, since a broker takes them in that in which they are begun. None
// waits for those before it, so many lines take the round trips of one where
// sites are far apart. A client that sends everything before it reads anything
// is fine while its results fit into maxPending. What waits between the stages
// is counted for the sender (transport.Lines): a line that is too much ends the
// submission, results that are too much wait until the client has taken those before.
const (
	chunkLines = 1000     // lines that wait for a stage
	lineSize   = 2 << 10  // bytes: fewer lines wait if they are longer
	maxPending = 16 << 20 // bytes of results that wait for the client
)

// line is one input line: a request, or the error for which it is refused.
type line struct {
	req   node.Request
	err   error
	num   uint32 // from 1, blank lines counted
	bytes int    // counted for its sender
}

// chunk is lines that are submitted together.
type chunk struct {
	lines  []line
	bytes  int                  // of its lines, counted for their sender
	answer func() []node.Answer // awaits them, of the lines without an error; nil: there are none
}

// submitLines answers every input line that is not blank with one result line, in
// order.
func (j *Jobs) submitLines(w http.ResponseWriter, r *http.Request, key string, strict bool) error {
	in, err := j.bodies.Lines(w, r)
	if err != nil {
		return err
	}
	defer in.Close()
	out := http.NewResponseController(w)
	_ = out.EnableFullDuplex() // HTTP/2 always has it
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", wire.TypeNDJSON)
	w.WriteHeader(http.StatusAccepted)

	lines, results := transport.NewPending[line](chunkLines*lineSize), transport.NewPending[byte](maxPending)
	begun := transport.NewPending[chunk](chunkLines * lineSize)
	var stages sync.WaitGroup
	stages.Go(func() {
		writeResults(w, out, results, in)
		cancel() // after the last result, or when the client is gone
	})
	stages.Go(func() { j.beginChunks(ctx, lines, begun) })
	stages.Go(func() { j.answerChunks(in, begun, results, rest.NoteOf(r.Context())) })
	whole := readLines(in, key, strict, lines)
	lines.Close()
	stages.Wait()
	if whole { // else the rest of the body must not be waited for
		in.Whole()
	}
	_ = out.SetWriteDeadline(time.Time{})
	return nil
}

// readLines parses ahead of the submitter, which takes what has arrived: a
// slow client's line is not kept waiting for a full chunk, a fast one's go a
// thousand at a time. It reports whether the body was read to its end.
func readLines(in *transport.Lines, key string, strict bool, lines *transport.Pending[line]) (whole bool) {
	jobs := &node.Lines{} // what the lines become: later ones may wait for earlier ones
	for n := uint32(1); !in.Failed(); n++ {
		text, err := in.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			continue // blank: no job, and no result
		}
		l := line{err: err, num: n}
		if err == nil {
			l.err = in.Hold(len(text))
		}
		full := l.err != nil && err == nil
		if l.err == nil {
			l.bytes = len(text)
			l.req, l.err = request(text, key, strict)
			l.req.Line, l.req.Lines = n, jobs
		}
		if !lines.Add(max(l.bytes, lineSize), l) || full {
			return false
		}
	}
	return false
}

// beginChunks has the broker begin what has arrived, until there is no more or
// nobody awaits the answers.
func (j *Jobs) beginChunks(ctx context.Context, lines *transport.Pending[line], begun *transport.Pending[chunk]) {
	defer begun.Close()
	defer lines.Abandon()
	for more := true; more; {
		var c chunk
		c.lines, more = lines.TakeAll()
		size := j.begin(ctx, &c)
		if !begun.Add(size, c) {
			return
		}
	}
}

// begin submits a chunk, without awaiting the answers, and returns how much room it takes.
func (j *Jobs) begin(ctx context.Context, c *chunk) (size int) {
	ended := problem.Ended(ctx)
	reqs := make([]node.Request, 0, len(c.lines))
	for i := range c.lines {
		l := &c.lines[i]
		c.bytes, size = c.bytes+l.bytes, size+max(l.bytes, lineSize)
		if l.err == nil {
			l.err = ended
		}
		if l.err == nil {
			l.req.Refused = j.resolve(ctx, &l.req.Spec)
			reqs = append(reqs, l.req)
		}
		l.req = node.Request{} // the broker has it
	}
	if len(reqs) > 0 {
		c.answer = j.broker.BeginSubmit(ctx, reqs)
	}
	return size
}

// answerChunks turns what is begun into results, until there is no more or nobody
// takes them.
func (j *Jobs) answerChunks(
	in *transport.Lines, begun *transport.Pending[chunk], results *transport.Pending[byte], note *rest.Note,
) {
	defer results.Close()
	defer begun.Abandon()
	for more := true; more; {
		var chunks []chunk
		chunks, more = begun.TakeAll()
		for i := range chunks {
			buf := j.resultsOf(&chunks[i], note)
			in.Drop(chunks[i].bytes)
			if in.Take(len(buf)) {
				results.Drain()
			}
			if !results.Add(len(buf), buf...) {
				return
			}
		}
	}
}

// resultsOf awaits a chunk's answers and returns its result lines.
func (j *Jobs) resultsOf(c *chunk, note *rest.Note) (buf []byte) {
	var answers []node.Answer
	if c.answer != nil {
		answers = c.answer()
	}
	for _, l := range c.lines {
		a := node.Answer{Err: l.err}
		if l.err == nil {
			a, answers = answers[0], answers[1:]
		}
		buf = j.appendResult(buf, a, int(l.num), note)
	}
	return buf
}

// appendResult writes a result line: an acceptance or a problem.
func (j *Jobs) appendResult(b []byte, a node.Answer, n int, note *rest.Note) []byte {
	if a.Err == nil {
		j.accepted.Inc()
		return appendAccepted(b, a, a.Replayed)
	}
	j.refuse(a.Err)
	p := problem.Logged(j.log, a.Err)
	p.Line = n
	noteLine(note, &p.Problem)
	body, err := json.Marshal(p.Problem)
	if err != nil {
		body = []byte("{}")
	}
	return append(append(b, body...), '\n')
}

// writeResults writes as fast as the client takes them.
func writeResults(w io.Writer, out *http.ResponseController, results *transport.Pending[byte], in *transport.Lines) {
	defer results.Abandon()
	for {
		buf, more := results.TakeAll()
		if len(buf) > 0 {
			if _, err := w.Write(buf); err != nil {
				return
			}
			if err := out.Flush(); err != nil {
				return
			}
			in.Drop(len(buf))
		}
		if !more {
			return
		}
	}
}
