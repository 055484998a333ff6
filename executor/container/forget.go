package container

import (
	"cmp"
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// Stop implements executor.Handler. What runs is asked to end through its folder,
// without the engine.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	return h.attempts.Stop(ctx, id, func(w *work) error {
		if w.stopWhy == "" {
			w.stopWhy = cmp.Or(why, "the broker asked for it")
		}
		w.abort(errStopped)
		w.poke()
		return nil
	})
}

// Find implements executor.Finder.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, error) {
	return h.attempts.Find(job, task, attempt)
}

// FindNewest implements executor.Finder.
func (h *Handler) FindNewest(job string, tasks []uint32) []executor.Newest {
	return h.attempts.FindNewest(job, tasks)
}

// RemovedOutput implements executor.OutputHistory.
func (h *Handler) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return h.attempts.RemovedOutput(job, task, attempt)
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	return h.attempts.Forget(id, func(w *work) error {
		err := writeEnd(w, ended{*w.Ended, true})
		if err == nil && w.IsKept() {
			h.life.Go(func() { h.dropFiles(w) })
		}
		return err
	})
}

// evict drops the last trace of an attempt.
func (h *Handler) evict(k attempts.Kept) bool {
	return h.attempts.Evict(k, h.folders, (*work).isCleaned, func(*work) {})
}
