package attempts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// Streams are the outputs of an attempt by number.
var Streams = [2]string{"stdout", "stderr"}

// errNoStream: see executor.Handler.Logs.
var errNoStream = errors.New("no such stream: stdout or stderr")

// Logs implements the part of Logs that all handlers share: open opens a stream of an attempt that the
// handler has; what it has no more, or has just put there, is read from the store.
func (a *Set[W]) Logs(ctx context.Context, id executor.ID, stream string,
	open func(w W, stream int) (io.ReadCloser, error),
) (io.ReadCloser, error) {
	w, n, err := a.output(ctx, id, stream)
	if err == nil {
		var r io.ReadCloser
		if r, err = open(w, n); err == nil {
			return r, nil
		}
	}
	if !errors.Is(err, executor.ErrUnknownAttempt) {
		return nil, err
	}
	kept, missing := a.Kept(id, n)
	if errors.Is(missing, executor.ErrUnknownAttempt) && w != *new(W) {
		return nil, err // the handler knows better why
	}
	return kept, missing
}

// Kept opens a stream that is in the store.
func (a *Set[W]) Kept(id executor.ID, stream int) (io.ReadSeekCloser, error) {
	r, err := a.store.Open(id, stream)
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", id, err)
	}
	return r, nil
}

// output begins Logs: it returns the attempt, once its start is decided, and the
// stream's number.
func (a *Set[W]) output(ctx context.Context, id executor.ID, stream string) (w W, n int, err error) {
	if n = slices.Index(Streams[:], stream); n < 0 {
		return w, n, fmt.Errorf("logs of %s: %.20q: %w", id, stream, errNoStream)
	}
	w, ok := a.find(id)
	if !ok {
		return w, n, fmt.Errorf("logs of %s: %w", id, executor.ErrUnknownAttempt)
	}
	select {
	case <-w.Common().accepted:
	case <-ctx.Done():
		return w, n, fmt.Errorf("logs of %s: %w", id, ctx.Err())
	}
	if w.Common().startErr != nil {
		return w, n, fmt.Errorf("logs of %s: %w", id, executor.ErrUnknownAttempt)
	}
	return w, n, nil
}

// Read reads a stream of an attempt from the file that it writes to, which may be
// moved meanwhile, as far as it may be shown: at most limit bytes as long as it
// runs. With notices it follows. It takes f over, also on an error.
func (a *Set[W]) Read(
	ctx context.Context, w W, stream int, f *os.File, limit int64, follow *Notices,
) (io.ReadCloser, error) {
	r := &reader{
		ended: func() *End { return a.EndOf(w) }, done: w.Common().Done, quit: a.Quit,
		stream: stream, f: f, limit: limit, follow: follow != nil, unlist: func() {},
	}
	if follow != nil {
		var err error
		// By descriptor: the path may be moved, or serve another attempt already.
		if r.grown, r.unlist, err = follow.Add(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
			f.Close()
			return nil, fmt.Errorf("logs of %s: %w", w.Common().Name, err)
		}
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r, nil
}

// reader reads an attempt's output, as far as it may be shown.
type reader struct {
	ended      func() *End
	done, quit <-chan struct{}
	stream     int
	f          *os.File
	limit, pos int64
	follow     bool
	ctx        context.Context //nolint:containedctx // the reader's life is the caller's
	cancel     context.CancelFunc
	grown      <-chan struct{}
	unlist     func()
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, end, err := r.readOnce(p)
		if n > 0 || err != nil {
			return n, err
		}
		if end || !r.follow {
			return 0, io.EOF
		}
		select {
		case <-r.grown:
		case <-r.done:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case <-r.quit:
			return 0, ErrClosed
		}
	}
}

// readOnce reads what is there. The file of an attempt may be cut at its end, or
// serve the next one if this one wrote nothing; that one starts only after this
// one's end is known here, so what was read before looking at the end is ours up
// to the recorded size.
func (r *reader) readOnce(p []byte) (n int, end bool, err error) {
	e := r.ended()
	stop := r.limit
	if e != nil {
		stop = e.Out[r.stream]
	}
	p = p[:min(int64(len(p)), max(stop-r.pos, 0))]
	if len(p) > 0 {
		if n, err = r.f.ReadAt(p, r.pos); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if e == nil {
		if now := r.ended(); now != nil {
			n = int(min(int64(n), max(now.Out[r.stream]-r.pos, 0)))
		}
	}
	r.pos += int64(n)
	return n, e != nil, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.cancel()
	r.unlist()
	return r.f.Close()
}
