package container

import (
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

var _ executor.Weigher = (*Handler)(nil)

// Weigh implements executor.Weigher: what an attempt has in its private directory, and what it has changed of its
// image's files, as far as the engine says that.
func (h *Handler) Weigh(ctx context.Context, id executor.ID) int64 {
	h.mu.Lock()
	w := h.attempts.Get(id.String())
	runs := w != nil && w.Ended == nil
	h.mu.Unlock()
	if !runs {
		return 0
	}
	sum := watchdog.WeighFolders(ctx, box.WorkOf(w.dir))
	if layer, err := h.engine.Written(ctx, h.container(w)); err == nil {
		sum += layer
	}
	return sum
}
