package api

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxWrite is how much one write deadline is for, in bytes. Longer answers
	// are large.
	maxWrite = 64 << 10
	// maxUntaken bytes of large answers may wait for their clients; while there
	// are more, clients are hurried. What an answer was made from waits beside it.
	maxUntaken = 64 << 20
	// hurried is how long a client may then take nothing of a large answer.
	hurried = time.Second
)

// deadlineWriter cuts a client that takes nothing for some time: it cannot hold
// a connection and an answer's memory forever. A slow one that does take is not
// cut, however long the answer.
type deadlineWriter struct {
	http.ResponseWriter
	out     *http.ResponseController
	wait    time.Duration
	untaken *atomic.Int64 // bytes of large answers, of all clients
}

var _ http.ResponseWriter = (*deadlineWriter)(nil)

func newDeadlineWriter(w http.ResponseWriter, wait time.Duration, untaken *atomic.Int64) *deadlineWriter {
	return &deadlineWriter{ResponseWriter: w, out: http.NewResponseController(w), wait: wait, untaken: untaken}
}

// Unwrap lets http.ResponseController find what the connection can do.
func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Write implements io.Writer.
func (d *deadlineWriter) Write(p []byte) (n int, err error) {
	large := len(p) > maxWrite
	if large {
		d.untaken.Add(int64(len(p)))
		defer d.untaken.Add(-int64(len(p)))
	}
	for {
		part := p[n:min(len(p), n+maxWrite)]
		wait := d.wait
		if large && d.untaken.Load() > maxUntaken {
			wait = min(wait, hurried)
		}
		_ = d.out.SetWriteDeadline(time.Now().Add(wait)) // not every connection has one
		m, werr := d.ResponseWriter.Write(part)
		if n += m; werr != nil || n == len(p) {
			return n, werr
		}
	}
}

// FlushError is what http.ResponseController looks for.
func (d *deadlineWriter) FlushError() error {
	_ = d.out.SetWriteDeadline(time.Now().Add(d.wait))
	return d.out.Flush()
}
