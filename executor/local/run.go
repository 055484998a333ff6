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
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

func nowUnix() int64 { return time.Now().UnixNano() }

// Start implements executor.Handler.
func (h *Handler) Start(ctx context.Context, t executor.Task) error {
	return h.attempts.Start(ctx, t, func() (*work, error) { return h.admit(t) },
		func(w *work) error { return h.handOver(ctx, w) })
}

// admit takes room for a new attempt. REQUIRES: h.mu held.
func (h *Handler) admit(t executor.Task) (*work, error) {
	if err := h.checkFit(t); err != nil {
		return nil, err
	}
	if err := h.attempts.MayKeep(t); err != nil {
		return nil, err
	}
	hold, err := h.use.Take(t.Need)
	if err != nil {
		return nil, err
	}
	w := &work{Attempt: attempts.NewAttempt(t), limit: h.cfg.MaxLogBytes, running: make(chan struct{})}
	w.Hold = hold
	return w, nil
}

// checkFit says why a task can never run here.
func (h *Handler) checkFit(t executor.Task) error {
	switch {
	case t.Image != "":
		return fmt.Errorf("%w: image %q needs a container runtime, this handler runs commands", executor.ErrUnfit, t.Image)
	case len(t.Command) == 0:
		return fmt.Errorf("%w: no command", executor.ErrUnfit)
	case h.contains(t) && h.contain.why != nil:
		return fmt.Errorf("%w: %s's commands run in a sandbox only, and none can be made here: %w", executor.ErrUnfit, t.Owner, h.contain.why)
	}
	if err := errors.Join(executor.CheckFiles(t.Files, false), t.Outputs.Check()); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrUnfit, err)
	}
	return h.use.Fit(t)
}

// handOver finds a supervisor and gives it the attempt. A supervisor that has
// died cannot have taken it, so the next one may.
func (h *Handler) handOver(ctx context.Context, w *work) error {
	for range 3 {
		s, err := h.slotFor(w)
		if err != nil {
			return err
		}
		if err = h.stage(ctx, s, w); err != nil {
			h.letGo(s, w)
			return err
		}
		if err = h.sendAttempt(s, w); err == nil {
			return nil
		}
		_, _, verr := s.record(line{Void: &w.Name}) // as long as w is the slot's, its journal is open
		h.letGo(s, w)
		if verr != nil {
			return verr
		}
	}
	return fmt.Errorf("%w: three supervisors in turn died: see %s", executor.ErrBusy, h.logPath())
}

// letGo takes an attempt back from a slot, which serves nobody any more.
func (h *Handler) letGo(s *slot, w *work) {
	h.mu.Lock()
	s.current, s.refs, w.slot = nil, s.refs-1, nil
	h.mu.Unlock()
	h.retire(s)
}

// slotFor takes a warm supervisor, or starts one.
func (h *Handler) slotFor(w *work) (*slot, error) {
	k := h.kindFor(w.Task)
	for s := h.warmest(k, w.Task.Owner); s != nil; s = h.warmest(k, w.Task.Owner) {
		if h.assign(s, w) {
			return s, nil
		}
	}
	s, err := h.spawn(k)
	if err != nil {
		return nil, err
	}
	if !h.assign(s, w) {
		return nil, fmt.Errorf("%w: a new supervisor died at once: see %s", executor.ErrBusy, h.logPath())
	}
	return s, nil
}

// assign makes w the slot's attempt, and reports whether the supervisor lives: a dead
// one's journal may be closed already. From then on the slot stays open until w is accepted.
func (h *Handler) assign(s *slot, w *work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.dead {
		return false
	}
	s.current, w.slot = w, s
	if s.contained {
		s.owner = w.Task.Owner
	}
	s.refs++
	return true
}

// sendAttempt records the attempt, then sends it; the record names the supervisor by
// standing in its journal.
func (h *Handler) sendAttempt(s *slot, w *work) error {
	t := w.Task
	t.Files = nil // they are there
	end, n, err := s.record(line{Ask: &asked{
		Task: t, Grace: h.cfg.Grace, MaxLog: h.cfg.MaxLogBytes, CPUs: w.Hold.CPUs,
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
	h.abandonStaging(id)
	return h.attempts.Stop(ctx, id, func(w *work) error {
		s := w.slot
		if h.strays[w] != nil {
			return nil // nothing of it is left
		}
		if s.conn != nil {
			if _, err := fmt.Fprintf(s.conn, "stop %s %.1000s", w.Name, why); err != nil && !s.dead {
				return err
			}
			return nil
		}
		// Its supervisor was started by an earlier broker: a signal is its only ear, and
		// the journal says what it means.
		if _, _, err := s.record(line{Stop: &stopping{Name: w.Name, Why: fmt.Sprintf("%.1000s", why)}}); err != nil && !s.dead {
			return err
		}
		if err := signalFile(s.pidfd, unix.SIGTERM); err != nil {
			return fmt.Errorf("signal supervisor %d: %w", s.pid, err)
		}
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
		err := h.noteForgotten(w)
		if err == nil && w.IsKept() {
			h.life.Go(func() { h.dropWork(w.Name) })
		}
		return err
	})
}

// noteForgotten writes it where Adopt reads. REQUIRES: h.mu held.
func (h *Handler) noteForgotten(w *work) error {
	s := w.slot
	if !s.dead {
		_, _, err := s.record(line{Drop: &w.Name})
		return err
	}
	f, err := outputs.OpenRegular(filepath.Join(s.dir, "journal"), os.O_WRONLY|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		return nil // removed by others: Adopt will read nothing of it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = appendLine(f, line{Drop: &w.Name})
	return err
}
