package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
)

func nowUnix() int64 { return time.Now().UnixNano() }

// Start implements executor.Handler.
func (h *Handler) Start(ctx context.Context, t executor.Task) error {
	name := t.ID.String()
	if !books.ValidName(name) {
		return fmt.Errorf("start %.80q: %w: an id holds only [a-z0-9.-], at most 200", name, executor.ErrUnfit)
	}
	w, first, err := h.admit(t, name)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if !first {
		select {
		case <-w.accepted:
			return w.startErr
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", name, ctx.Err())
		}
	}
	if err = h.handOver(w); err != nil {
		err = fmt.Errorf("start %s: %w", name, err)
		h.mu.Lock()
		h.use.Release(w.hold)
		delete(h.attempts, name)
		h.mu.Unlock()
	}
	w.startErr = err
	close(w.accepted)
	return err
}

// admit takes room for a new attempt, or finds the one of that name.
func (h *Handler) admit(t executor.Task, name string) (w *work, first bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false, books.ErrClosed
	}
	if !h.adopted {
		return nil, false, books.ErrNotAdopted
	}
	if known := h.attempts[name]; known != nil {
		if known.forgotten {
			return nil, false, fmt.Errorf("%w: it has run and was forgotten", executor.ErrUnknownAttempt)
		}
		return known, false, nil
	}
	if err = h.fit(t); err != nil {
		return nil, false, err
	}
	w = &work{
		task: t, name: name, limit: h.cfg.MaxLogBytes,
		accepted: make(chan struct{}), running: make(chan struct{}), done: make(chan struct{}),
	}
	if w.hold, err = h.use.Take(t.Need); err != nil {
		return nil, false, err
	}
	h.attempts[name] = w
	return w, true, nil
}

// fit says why a task can never run here.
func (h *Handler) fit(t executor.Task) error {
	switch {
	case t.Image != "":
		return fmt.Errorf("%w: image %q needs a container runtime, this handler runs commands", executor.ErrUnfit, t.Image)
	case len(t.Command) == 0:
		return fmt.Errorf("%w: no command", executor.ErrUnfit)
	}
	return h.use.Fit(t)
}

// newRoom is this machine's room.
func newRoom(c Config) *books.Room {
	var cpus []int
	if c.Pin {
		cpus = books.AllowedCPUs()
	}
	return books.NewRoom(machineName, c.Cores, c.MemMiB, cpus)
}

// handOver finds a supervisor and gives it the attempt. A supervisor that has
// died cannot have taken it, so the next one may.
func (h *Handler) handOver(w *work) error {
	for range 3 {
		s, err := h.slotFor(w)
		if err != nil {
			return err
		}
		if err = h.give(s, w); err == nil {
			return nil
		}
		h.mu.Lock()
		s.current, s.refs, w.slot = nil, s.refs-1, nil
		h.mu.Unlock()
		if _, _, verr := s.record(line{Void: &w.name}); verr != nil {
			return verr
		}
		h.retire(s)
	}
	return fmt.Errorf("%w: three supervisors in turn died: see %s", executor.ErrBusy, h.stderr.Name())
}

// slotFor takes a warm supervisor, or starts one.
func (h *Handler) slotFor(w *work) (*slot, error) {
	s := h.warmest()
	if s == nil {
		var err error
		if s, err = h.spawn(); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	s.assign(w)
	h.mu.Unlock()
	return s, nil
}

// assign makes w the slot's attempt. REQUIRES: Handler.mu held.
func (s *slot) assign(w *work) {
	s.current, w.slot = w, s
	s.refs++
}

// give records the attempt, then sends it; the record names the supervisor by
// standing in its journal.
func (h *Handler) give(s *slot, w *work) error {
	end, n, err := s.record(line{Ask: &asked{
		Task: w.task, Grace: h.cfg.Grace, MaxLog: h.cfg.MaxLogBytes, CPUs: w.hold.CPUs,
	}})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(s.conn, "run %d %d", end-int64(n), n); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}

// Stop implements executor.Handler.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	w := h.find(id)
	if w == nil {
		return nil
	}
	// A stop that overtakes its start would be lost.
	select {
	case <-w.accepted:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", w.name, ctx.Err())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.ended != nil || w.startErr != nil {
		return nil
	}
	if h.closed {
		return fmt.Errorf("stop %s: %w", w.name, books.ErrClosed)
	}
	s := w.slot
	if s.conn != nil {
		if _, err := fmt.Fprintf(s.conn, "stop %s %.1000s", w.name, why); err != nil && !s.dead {
			return fmt.Errorf("stop %s: %w", w.name, err)
		}
		return nil
	}
	// Its supervisor was started by an earlier broker: a signal is its only ear.
	if err := signalFile(s.pidfd, unix.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: signal supervisor %d: %w", w.name, s.pid, err)
	}
	return nil
}

// find is the attempt of that id, nil = none.
func (h *Handler) find(id executor.ID) *work {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempts[id.String()]
}

var _ executor.Finder = (*Handler)(nil)

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
	if err := h.noteForgotten(w); err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	h.keep(w)
	return nil
}

// noteForgotten writes it where Adopt reads. REQUIRES: h.mu held.
func (h *Handler) noteForgotten(w *work) error {
	s := w.slot
	if !s.dead {
		_, _, err := s.record(line{Drop: &w.name})
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "journal"), os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // removed by others: Adopt will read nothing of it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = appendLine(f, line{Drop: &w.name})
	return err
}
