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

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	return h.book.Forget(id, func(w *work) error {
		return writeFile(w.dir, endFile, kept{End: *w.Ended, NoOutput: w.noOutput, Forgotten: true})
	})
}

// evict drops the last trace of an attempt. A Job of it that is left is nobody's
// then, and is removed.
func (h *Handler) evict(k books.Kept) {
	dir := h.path("attempts", k.Name)
	if err := watchdog.RemoveTree(dir); err != nil {
		h.aside.Put(dir, err)
	}
	h.mu.Lock()
	w := h.book.Get(k.Name)
	h.book.Drop(k.Name)
	if w != nil {
		delete(h.byJob, w.job)
	}
	h.mu.Unlock()
	if w != nil {
		h.queue.Add(w.job)
	}
}
