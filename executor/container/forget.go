package container

import (
	"cmp"
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Stop implements executor.Handler. What runs is asked to end through its folder,
// without the engine.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	return h.attempts.Stop(ctx, id, func(w *work) error {
		if w.stopWhy == "" {
			w.stopWhy = cmp.Or(why, "the broker asked for it")
		}
		w.abort(errStopped)
		w.again()
		return nil
	})
}

// Find implements executor.Finder.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, bool) {
	return h.attempts.Find(job, task, attempt)
}

// RemovedOutput implements executor.OutputHistory.
func (h *Handler) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return h.attempts.RemovedOutput(job, task, attempt)
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	return h.attempts.Forget(id, func(w *work) error { return writeEnd(w, ended{*w.Ended, true}) })
}

// outputFile is where the output of an ended attempt is.
func (h *Handler) outputFile(k books.Kept, stream int) string {
	return h.path("attempts", k.Name, books.Streams[stream])
}

// evict drops the last trace of an attempt, once nothing is done about it any more.
func (h *Handler) evict(k books.Kept) bool {
	h.mu.Lock()
	w := h.attempts.Get(k.Name)
	h.mu.Unlock()
	if w == nil {
		return true
	}
	select {
	case <-w.cleaned:
	default:
		return false
	}
	if err := watchdog.RemoveTree(w.dir); err != nil { // files of another user, mostly
		h.aside.Put(w.dir, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts.Drop(k.Name)
	return true
}
