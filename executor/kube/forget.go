package kube

import (
	"cmp"
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// Stop implements executor.Handler.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	return h.works.attempts.Stop(ctx, id, func(w *work) error {
		if w.kill == nil {
			w.kill = &kill{cause: executor.Stopped, why: cmp.Or(why, "the broker asked for it")}
		}
		h.works.queue.Add(w.job)
		return nil
	})
}

// Find implements executor.Finder.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, error) {
	return h.works.attempts.Find(job, task, attempt)
}

// FindNewest implements executor.Finder.
func (h *Handler) FindNewest(job string, tasks []uint32) []executor.Newest {
	return h.works.attempts.FindNewest(job, tasks)
}

// RemovedOutput implements executor.OutputHistory.
func (h *Handler) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return h.works.attempts.RemovedOutput(job, task, attempt)
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	return h.works.attempts.Forget(id, func(w *work) error {
		return writeFile(w.dir, endFile, kept{End: *w.Ended, NoOutput: w.NoOutput, Forgotten: true})
	})
}

// evict drops the last trace of an attempt, once its Job is gone. A Job of it that is
// left is nobody's then, and is removed.
func (h *Handler) evict(k attempts.Kept) bool {
	return h.works.attempts.Evict(k, h.folders, (*work).isCleaned, func(w *work) {
		delete(h.works.byJob, w.job)
		h.works.queue.Add(w.job)
	})
}
