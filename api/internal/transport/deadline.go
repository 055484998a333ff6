package transport

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

// Writers bounds how long all clients together may leave answers untaken.
type Writers struct {
	wait    time.Duration
	untaken atomic.Int64 // bytes of large answers that clients have not taken yet
}

// NewWriters makes the bound; a client may take nothing for wait.
func NewWriters(wait time.Duration) *Writers { return &Writers{wait: wait} }

// Guard returns a writer that cuts a client that takes nothing for some time.
func (o *Writers) Guard(w http.ResponseWriter) http.ResponseWriter {
	return &deadlineWriter{ResponseWriter: w, out: http.NewResponseController(w), of: o}
}

// deadlineWriter cuts a client that takes nothing for some time: it cannot hold
// a connection and an answer's memory forever. A slow one that does take is not
// cut, however long the answer.
type deadlineWriter struct {
	http.ResponseWriter
	out *http.ResponseController
	of  *Writers
}

var _ http.ResponseWriter = (*deadlineWriter)(nil)

// Unwrap lets http.ResponseController find what the connection can do.
func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Write implements io.Writer.
func (d *deadlineWriter) Write(p []byte) (n int, err error) {
	large := len(p) > maxWrite
	if large {
		d.of.untaken.Add(int64(len(p)))
		defer d.of.untaken.Add(-int64(len(p)))
	}
	for {
		part := p[n:min(len(p), n+maxWrite)]
		wait := d.of.wait
		if large && d.of.untaken.Load() > maxUntaken {
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
	_ = d.out.SetWriteDeadline(time.Now().Add(d.of.wait))
	return d.out.Flush()
}
