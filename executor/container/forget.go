package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
)

// Stop implements executor.Handler. What runs is asked to end through its folder,
// without the engine.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	w := h.find(id)
	if w == nil {
		return nil
	}
	select { // a stop that overtakes its start would be lost
	case <-w.accepted:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", w.name, ctx.Err())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case w.startErr != nil, w.ended != nil:
		return nil
	case h.closed:
		return fmt.Errorf("stop %s: %w", w.name, books.ErrClosed)
	}
	if w.stopWhy == "" {
		w.stopWhy = cmp.Or(why, "the broker asked for it")
	}
	w.abort(errStopped)
	w.again()
	return nil
}

// find is the attempt of that id, nil = none.
func (h *Handler) find(id executor.ID) *work {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempts[id.String()]
}

// Find implements executor.Finder: forgotten attempts count as long as they are
// retained.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.attempts {
		if id := w.task.ID; id.Job == job && id.Task == task && id.Attempt == attempt {
			return id, true
		}
	}
	return executor.ID{}, false
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := id.String()
	w := h.attempts[name]
	switch {
	case h.closed:
		return fmt.Errorf("forget %s: %w", name, books.ErrClosed)
	case w == nil:
		return fmt.Errorf("forget %s: %w", name, executor.ErrUnknownAttempt)
	case w.forgotten:
		return nil
	case w.ended == nil:
		return fmt.Errorf("forget %s: %w", name, books.ErrRunning)
	}
	e := *w.ended
	e.Forgotten = true
	if err := writeEnd(w.dir, &e); err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	w.ended = &e
	h.keep(w)
	return nil
}

// keep hands a forgotten attempt to the janitor; the handler still knows its
// name, so that it cannot run again. REQUIRES: h.mu held.
func (h *Handler) keep(w *work) {
	w.forgotten = true
	w.task.Command, w.task.Env = nil, nil // there can be thousands
	h.janitor.Add(books.Kept{Name: w.name, At: w.ended.At, Bytes: w.ended.Out[0] + w.ended.Out[1]})
}

// evict drops the last trace of an attempt.
func (h *Handler) evict(k books.Kept) {
	h.mu.Lock()
	w := h.attempts[k.Name]
	h.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-w.cleaned:
	case <-h.quit:
		return // the next life does it
	}
	if err := removeAttempt(w.dir); err != nil {
		h.cfg.Logger.Warn().Err(err).Msg("the folder of an old attempt cannot be removed: files of another user? remove it as root")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.attempts, k.Name)
}

var errNoStream = errors.New("no such stream: stdout or stderr")
