package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/api/wire"
)

// maxPiece bounds what waits for the end of its line, in bytes.
const maxPiece = 32 << 10

// outputWriter sends the output of several tasks to one client, line by line.
type outputWriter struct {
	mu      sync.Mutex
	w       io.Writer
	control *http.ResponseController
	err     error // guarded by mu; the client takes nothing any more
}

// send writes one line at once.
func (o *outputWriter) send(line *wire.Output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	enc := json.NewEncoder(o.w)
	enc.SetEscapeHTML(false)
	if o.err = enc.Encode(line); o.err == nil {
		o.err = o.control.Flush()
	}
}

// failed reports whether the client takes nothing any more.
func (o *outputWriter) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// copy sends the output of a task's attempt as it comes: whole lines, so that those of several
// tasks do not mix.
func (o *outputWriter) copy(task, attempt uint32, body io.Reader) error {
	buf := make([]byte, 0, 2*maxPiece)
	for !o.failed() {
		n, err := body.Read(buf[len(buf):min(cap(buf), len(buf)+maxPiece)])
		buf = buf[:len(buf)+n]
		whole := bytes.LastIndexByte(buf, '\n') + 1
		if err != nil || len(buf)-whole >= maxPiece {
			whole = len(buf)
		}
		if whole > 0 {
			o.send(piece(task, attempt, buf[:whole]))
			buf = buf[:copy(buf, buf[whole:])]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// piece returns a line with some output.
func piece(task, attempt uint32, b []byte) *wire.Output {
	if utf8.Valid(b) {
		return &wire.Output{Task: &task, Attempt: attempt, Text: string(b)}
	}
	return &wire.Output{Task: &task, Attempt: attempt, Base64: bytes.Clone(b)}
}
