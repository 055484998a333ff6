package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
)

// Logs implements executor.Handler.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	n := -1
	for i, s := range streams {
		if s == stream {
			n = i
		}
	}
	if n < 0 {
		return nil, fmt.Errorf("logs of %s: no stream %q: stdout or stderr", id, stream)
	}
	w := h.find(id)
	if w == nil {
		return nil, fmt.Errorf("logs of %s: %w", id, executor.ErrUnknownAttempt)
	}
	select {
	case <-w.accepted:
	case <-ctx.Done():
		return nil, fmt.Errorf("logs of %s: %w", id, ctx.Err())
	}
	if w.startErr != nil {
		return nil, fmt.Errorf("logs of %s: %w", id, executor.ErrUnknownAttempt)
	}
	return h.openLog(ctx, w, n, follow)
}

func (h *Handler) openLog(ctx context.Context, w *work, n int, follow bool) (io.ReadCloser, error) {
	running := w.running
	for {
		if e := h.endOf(w); e != nil {
			return h.endedLog(w, e, n)
		}
		f, err := os.Open(filepath.Join(w.slot.dir, streams[n]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("logs of %s: %w", w.name, err)
		}
		// Opened while it ran, or else the file may be another attempt's: its end
		// is known, or its supervisor has kept its output and made the next file.
		if err == nil && h.endOf(w) == nil {
			if kept, keptErr := os.Open(logPath(h.cfg.Dir, w.name, n)); keptErr == nil {
				f.Close()
				f = kept
			}
			return h.newFollower(ctx, w, n, f, follow)
		}
		if err == nil {
			f.Close()
			continue
		}
		// Its files are not made yet, or moved away and its end is on the way.
		select {
		case <-running:
			running = nil
		case <-w.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("logs of %s: %w", w.name, ctx.Err())
		case <-h.quit:
			return nil, fmt.Errorf("logs of %s: %w", w.name, books.ErrClosed)
		}
	}
}

func (h *Handler) endOf(w *work) *ended {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.ended
}

func (e *ended) size(stream int) int64 { return []int64{e.Out, e.Err}[stream] }

func (h *Handler) endedLog(w *work, e *ended, n int) (io.ReadCloser, error) {
	if e.size(n) == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	f, err := os.Open(logPath(h.cfg.Dir, w.name, n))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("logs of %s: %w: no longer kept", w.name, executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", w.name, err)
	}
	return f, nil
}

// follower reads the output of an attempt that was running when it was opened.
type follower struct {
	h      *Handler
	w      *work
	stream int
	f      *os.File
	follow bool
	pos    int64
	ctx    context.Context
	cancel context.CancelFunc
	grown  <-chan struct{}
	unlist func()
}

func (h *Handler) newFollower(ctx context.Context, w *work, n int, f *os.File, follow bool) (io.ReadCloser, error) {
	r := &follower{h: h, w: w, stream: n, f: f, follow: follow, unlist: func() {}}
	if follow {
		var err error
		// By descriptor: the path may be moved or serve another attempt already.
		if r.grown, r.unlist, err = h.notices.Add(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
			f.Close()
			return nil, fmt.Errorf("logs of %s: %w", w.name, err)
		}
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r, nil
}

// Read implements io.Reader.
func (r *follower) Read(p []byte) (int, error) {
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
		case <-r.w.done:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case <-r.h.quit:
			return 0, books.ErrClosed
		}
	}
}

// readOnce reads what is there. The file of an attempt that wrote nothing may
// serve the next one; that one starts only after this one's end is known here,
// so what was read before looking at the end is ours up to the recorded size.
func (r *follower) readOnce(p []byte) (n int, end bool, err error) {
	e := r.h.endOf(r.w)
	stop := r.w.limit
	if e != nil {
		stop = e.size(r.stream)
	}
	p = p[:min(int64(len(p)), max(stop-r.pos, 0))]
	if len(p) > 0 {
		if n, err = r.f.ReadAt(p, r.pos); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if e == nil {
		if now := r.h.endOf(r.w); now != nil {
			n = int(min(int64(n), max(now.size(r.stream)-r.pos, 0)))
		}
	}
	r.pos += int64(n)
	return n, e != nil, err
}

// Close implements io.Closer.
func (r *follower) Close() error {
	r.cancel()
	r.unlist()
	return r.f.Close()
}
