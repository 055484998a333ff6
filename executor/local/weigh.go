package local

import (
	"context"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/sandbox"
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
	walk := diskuse.Unbounded(ctx)
	for _, folder := range []string{sandbox.WorkFolder, sandbox.TempFolder} {
		_ = walk.Folder(filepath.Join(dir, folder)) // what was seen until then counts
	}
	return walk.Used.Bytes
}
