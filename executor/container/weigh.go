package container

import (
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

var _ executor.Weigher = (*Handler)(nil)

// Weigh implements executor.Weigher: whatever an attempt can write to, as far as it can be counted before ctx ends.
func (h *Handler) Weigh(ctx context.Context, id executor.ID) int64 {
	h.mu.Lock()
	w := h.attempts.Get(id.String())
	runs := w != nil && w.Ended == nil
	h.mu.Unlock()
	if !runs {
		return 0
	}
	walk := diskuse.Unbounded(ctx)
	_ = h.countAll(w, walk) // what was seen until then counts
	return walk.Used.Bytes
}
