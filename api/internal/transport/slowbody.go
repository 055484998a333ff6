package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// slowBody is how long a body may take before it is one of the slow ones, of which
// there may be few.
const slowBody = time.Second

// deadlineReader gives up on a client that sends nothing for a while. A body that
// takes longer than slowBody needs one of the few places for such, so that
// clients that send a byte now and then cannot hold all connections.
type deadlineReader struct {
	io.Reader
	out   *http.ResponseController
	wait  time.Duration
	timer *time.Timer // until the body is a slow one

	mu      sync.Mutex
	ended   bool        // guarded by mu
	leave   func()      // of the place it has; guarded by mu
	unwatch func() bool // has nobody told any more that the request has ended; guarded by mu
	refused error       // there is no place for it, or its request has ended; guarded by mu
}

// newDeadlineReader reads a body of at most so many bytes; finish must be called.
func (b *Bodies) newDeadlineReader(w http.ResponseWriter, r *http.Request, most int64) *deadlineReader {
	d := &deadlineReader{
		Reader: http.MaxBytesReader(w, r.Body, most), out: http.NewResponseController(w),
		wait: b.timeout,
	}
	d.timer = time.AfterFunc(slowBody, func() { d.slow(r.Context(), b.slow) })
	return d
}

// end has nothing read any more, for this reason.
func (d *deadlineReader) end(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended && why != nil {
		d.refused = why
		_ = d.out.SetReadDeadline(time.Now())
	}
}

// slow takes a place for a body that is still on its way, or has its read end. From now on it also ends with its
// request, whose token may be revoked: to watch for that from its first byte on would cost each submission more than
// to find its token does.
func (d *deadlineReader) slow(ctx context.Context, at *Places) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	d.unwatch = context.AfterFunc(ctx, func() { d.end(problem.Ended(ctx)) })
	if d.leave, d.refused = at.Enter(ctx); d.refused != nil {
		_ = d.out.SetReadDeadline(time.Now())
	}
}

// Read implements io.Reader.
func (d *deadlineReader) Read(p []byte) (int, error) {
	if err := d.extend(); err != nil {
		return 0, err
	}
	n, err := d.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.refused != nil {
			err = d.refused
		}
	}
	return n, err
}

func (d *deadlineReader) extend() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused == nil {
		_ = d.out.SetReadDeadline(time.Now().Add(d.wait)) // not every connection has one
	}
	return d.refused
}

// stop takes the deadline back once all of the body has come: one that passes
// later would end the request's context.
func (d *deadlineReader) stop() {
	d.finish()
	_ = d.out.SetReadDeadline(time.Time{})
}

// finish gives the place back; nothing is read any more. It is idempotent.
func (d *deadlineReader) finish() {
	d.timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.unwatch != nil {
		d.unwatch()
	}
	if d.leave != nil {
		d.leave()
		d.leave = nil
	}
}
