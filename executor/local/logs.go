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
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// Logs implements executor.Handler.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	return h.attempts.Logs(ctx, id, stream, func(w *work, n int) (io.ReadCloser,
		error,
	) {
		return h.openLog(ctx, w, n, follow)
	})
}

func (h *Handler) openLog(ctx context.Context, w *work, n int, follow bool) (io.ReadCloser, error) {
	running := w.running
	var notices *attempts.Notices
	if follow {
		notices = h.desk.Notices
	}
	for {
		if e := h.attempts.EndOf(w); e != nil {
			return h.endedLog(w, e, n)
		}
		f, err := outputs.OpenRegular(filepath.Join(w.slot.dir, attempts.Streams[n]), os.O_RDONLY)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
		}
		// Opened while it ran, or else the file may be another attempt's: its end
		// is known, or its supervisor has kept its output and made the next file.
		if err == nil && h.attempts.EndOf(w) == nil {
			if kept := h.keptLog(w, n); kept != nil {
				f.Close()
				f = kept
			}
			return h.attempts.Read(ctx, w, n, f, w.limit, notices)
		}
		if err == nil {
			f.Close()
			continue
		}
		// Its files are not made yet, or moved away and its end is on the way.
		select {
		case <-running:
			running = nil
		case <-w.Done:
		case <-ctx.Done():
			return nil, fmt.Errorf("logs of %s: %w", w.Name, ctx.Err())
		case <-h.attempts.Quit:
			return nil, fmt.Errorf("logs of %s: %w", w.Name, attempts.ErrClosed)
		}
	}
}

// keptLog opens output that was moved already though its end is not known yet, nil = it
// was not. What a sandbox has kept in its slot may just be on its way to its place.
func (h *Handler) keptLog(w *work, n int) *os.File {
	place := logPath(h.cfg.Dir, w.Name, n)
	for _, path := range []string{place, w.slot.keptPath(w.Name, n), place} {
		if f, err := outputs.OpenRegular(path, os.O_RDONLY); err == nil {
			return f
		}
	}
	return nil
}

func (h *Handler) endedLog(w *work, e *attempts.End, n int) (io.ReadCloser, error) {
	if e.Out[n] == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	f, err := outputs.OpenRegular(logPath(h.cfg.Dir, w.Name, n), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("logs of %s: %w: no longer kept", w.Name, executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
	}
	return f, nil
}
