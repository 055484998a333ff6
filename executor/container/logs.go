package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
)

// Logs implements executor.Handler. The task writes straight into files of its
// attempt's folder, which stay there.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	w, n, err := h.attempts.Output(ctx, id, stream)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(w.dir, stream))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("logs of %s: %w: no longer kept", id, executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", id, err)
	}
	var notices *books.Notices
	if follow {
		notices = h.desk.Notices
	}
	return h.attempts.Read(ctx, w, n, f, h.cfg.MaxLogBytes, notices)
}
