package container

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

var _ executor.Weigher = (*Handler)(nil)

// Weigh implements executor.Weigher: whatever an attempt can write to on the disk of the handler's folder, as far as it
// can be counted before ctx ends.
func (h *Handler) Weigh(ctx context.Context, id executor.ID) int64 {
	h.mu.Lock()
	w := h.attempts.Get(id.String())
	runs := w != nil && w.Ended == nil
	h.mu.Unlock()
	if !runs {
		return 0
	}
	return h.weigh(ctx, w)
}

func (h *Handler) weigh(ctx context.Context, w *work) int64 {
	walk := diskuse.Unbounded(ctx)
	_ = countFolder(w, walk) // what was seen until then counts
	_ = h.countLayer(ctx, w, walk, h.isOnOurDisk)
	return walk.Used.Bytes
}

// isOnOurDisk reports whether an engine's folder upper, or else all that it has, is on the disk of the handler's
// folder. What is not known to be there is not: the end of its task might make no room.
func (h *Handler) isOnOurDisk(upper string) bool {
	h.mu.Lock()
	root := h.presence.info.RootDir
	h.mu.Unlock()
	ours, err := deviceOf(h.cfg.Dir)
	if err != nil {
		return false
	}
	theirs, err := deviceOf(upper)
	if err != nil {
		theirs, err = deviceOf(root)
	}
	return err == nil && theirs == ours
}

// deviceOf returns the number of the device that holds a file; of no path it is an error.
func deviceOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Dev, err
}
