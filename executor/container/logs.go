package container

import (
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

// Logs implements executor.Handler. The task writes straight into files of its
// attempt's folder, which stay there.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	return h.attempts.Logs(ctx, id, stream, func(w *work, n int) (io.ReadCloser,
		error,
	) {
		return h.openLog(ctx, w, n, follow)
	})
}

func (h *Handler) openLog(ctx context.Context, w *work, n int, follow bool) (io.ReadCloser, error) {
	f, err := outputs.OpenRegular(filepath.Join(w.dir, attempts.Streams[n]), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("logs of %s: %w: no longer kept", w.Name, executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
	}
	var notices *attempts.Notices
	if follow {
		notices = h.desk.Notices
	}
	return h.attempts.Read(ctx, w, n, f, h.cfg.MaxLogBytes, notices)
}
