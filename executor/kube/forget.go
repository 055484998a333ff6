package kube

import (
	"cmp"
	"context"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Stop implements executor.Handler.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	return h.book.Stop(ctx, id, func(w *work) error {
		if w.kill == nil {
			w.kill = &kill{cause: executor.Stopped, why: cmp.Or(why, "the broker asked for it")}
		}
		h.queue.Add(w.job)
		return nil
	})
}

// Find implements executor.Finder.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, bool) {
	return h.book.Find(job, task, attempt)
}

// RemovedOutput implements executor.OutputHistory.
func (h *Handler) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return h.book.RemovedOutput(job, task, attempt)
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	return h.book.Forget(id, func(w *work) error {
		return writeFile(w.dir, endFile, kept{End: *w.Ended, NoOutput: w.NoOutput, Forgotten: true})
	})
}

// outputFile is where the output of an ended attempt is.
func (h *Handler) outputFile(k books.Kept, stream int) string {
	return h.path("attempts", k.Name, books.Streams[stream])
}

// evict drops the last trace of an attempt, once its Job is gone. A Job of it that is
// left is nobody's then, and is removed.
func (h *Handler) evict(k books.Kept) bool {
	h.mu.Lock()
	w := h.book.Get(k.Name)
	h.mu.Unlock()
	if w == nil {
		return true
	}
	select {
	case <-w.cleaned:
	default:
		return false
	}
	if err := watchdog.RemoveTree(w.dir); err != nil {
		h.aside.Put(w.dir, err)
	}
	h.mu.Lock()
	h.book.Drop(k.Name)
	delete(h.byJob, w.job)
	h.mu.Unlock()
	h.queue.Add(w.job)
	return true
}
