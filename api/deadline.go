package api

import (
	"net/http"
	"time"
)

// maxWrite is how much one write deadline is for, in bytes.
const maxWrite = 64 << 10

// deadlineWriter cuts a client that takes nothing for some time: it cannot hold
// a connection and an answer's memory for ever. A slow one that does take is not
// cut, however long the answer.
type deadlineWriter struct {
	http.ResponseWriter
	out  *http.ResponseController
	wait time.Duration
}

var _ http.ResponseWriter = (*deadlineWriter)(nil)

func newDeadlineWriter(w http.ResponseWriter, wait time.Duration) *deadlineWriter {
	return &deadlineWriter{ResponseWriter: w, out: http.NewResponseController(w), wait: wait}
}

// Unwrap lets http.ResponseController find what the connection can do.
func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Write implements io.Writer.
func (d *deadlineWriter) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(len(p), n+maxWrite)]
		_ = d.out.SetWriteDeadline(time.Now().Add(d.wait)) // not every connection has one
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
