package local

import (
	"context"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

var _ executor.Weigher = (*Handler)(nil)

// Weigh implements executor.Weigher. Files without a name are not seen, nor folders that a task has closed to a broker
// that is not root: its own bound of scratch holds for both.
func (h *Handler) Weigh(ctx context.Context, id executor.ID) int64 {
	h.mu.Lock()
	w := h.attempts.Get(id.String())
	dir := ""
	if w != nil && w.slot != nil && w.slot.current == w {
		dir = w.slot.dir
	}
	h.mu.Unlock()
	if dir == "" {
		return 0
	}
	return watchdog.WeighFolders(ctx, filepath.Join(dir, sandbox.WorkFolder), filepath.Join(dir, sandbox.TempFolder))
}
