package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/container/box"
)

// streams are the outputs by number.
var streams = []string{box.Stdout, box.Stderr}

// Logs implements executor.Handler. The task writes straight into files of its
// attempt's folder, which stay there.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	n := slices.Index(streams, stream)
	if n < 0 {
		return nil, fmt.Errorf("logs of %s: %.20q: %w", id, stream, errNoStream)
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
	r := &reader{h: h, w: w, stream: n, follow: follow, unlist: func() {}}
	path := filepath.Join(w.dir, stream)
	var err error
	if r.f, err = os.Open(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("logs of %s: %w: no longer kept", id, executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", id, err)
	}
	if follow {
		if r.grown, r.unlist, err = h.notices.Add(path); err != nil {
			r.f.Close()
			return nil, fmt.Errorf("logs of %s: %w", id, err)
		}
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r, nil
}

// reader reads an attempt's output, as far as it may be shown.
type reader struct {
	h      *Handler
	w      *work
	stream int
	f      *os.File
	follow bool
	pos    int64
	ctx    context.Context //nolint:containedctx // the reader's life is the caller's
	cancel context.CancelFunc
	grown  <-chan struct{}
	unlist func()
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		end := r.h.endOf(r.w) // before reading: what is written after it is told
		limit := r.h.cfg.MaxLogBytes
		if end != nil {
			limit = end.Out[r.stream]
		}
		n, err := r.f.ReadAt(p[:min(int64(len(p)), max(limit-r.pos, 0))], r.pos)
		r.pos += int64(n)
		if errors.Is(err, io.EOF) { // of what there is by now
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
		if end != nil || !r.follow {
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

// Close implements io.Closer.
func (r *reader) Close() error {
	r.cancel()
	r.unlist()
	return r.f.Close()
}

func (h *Handler) endOf(w *work) *ended {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.ended
}
