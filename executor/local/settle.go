package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// heard takes a supervisor's word.
func (h *Handler) heard(s *slot, l line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := s.current
	if l.Sick != nil {
		s.sick = *l.Sick
	}
	switch {
	case w == nil || h.attempts.Closed():
	case l.Run != nil && l.Run.Name == w.Name:
		w.Began = l.Run.At
		h.hasStarted(w)
	case l.End != nil && l.End.Name == w.Name:
		if !l.End.Result.Started.IsZero() { // it may not have run long enough to be told of
			h.hasStarted(w)
		}
		if l.End.Result.Cause == executor.Declined {
			if h.cores.renew(h.cfg) {
				h.use.Use(h.cores.cpus)
			}
		}
		h.free(s)
		h.settle(w, l.End)
	}
}

// hasStarted tells that its process runs, once. REQUIRES: h.mu held.
func (h *Handler) hasStarted(w *work) {
	if w.runs() {
		h.attempts.Events.Put(executor.Event{ID: w.Task.ID, Started: true})
	}
}

// runs notes that its process runs, and reports whether that is new.
// REQUIRES: Handler.mu held, or w not shared yet.
func (w *work) runs() bool {
	select {
	case <-w.running:
		return false
	default:
		close(w.running)
		return true
	}
}

// free makes the supervisor ready for another attempt, or lets it go.
// REQUIRES: h.mu held.
func (h *Handler) free(s *slot) {
	s.current, s.served = nil, true
	if s.dead || s.conn == nil {
		return
	}
	if s.size.Load() > maxJournal || s.sick != "" || s.spent {
		h.retire(s)
		return
	}
	if h.idle = append(h.idle, s); len(h.idle) > maxIdle { // the one that has not served for longest goes
		h.retire(h.idle[0])
		h.idle = slices.Delete(h.idle, 0, 1)
	}
}

// gone settles what a dead supervisor left: an attempt that it ended without
// being heard, or one that it lost.
func (h *Handler) gone(s *slot) {
	now := time.Now()
	h.mu.Lock()
	s.dead = true
	h.idle = slices.DeleteFunc(h.idle, func(o *slot) bool { return o == s })
	w := s.current
	h.mu.Unlock()
	var e *ended
	if w != nil {
		// handOver may have noticed too and be giving it to another supervisor.
		<-w.Accepted()
		h.mu.Lock()
		ours, seen := s.current == w, &sighting{began: w.Began, gone: now, task: w.Task}
		h.mu.Unlock()
		if ours {
			h.collect(s, w.Name)
			e = h.lastWord(s, w.Name, seen)
			h.keepWork(s, &seen.task, e)
		}
	}
	if s.pidfd != nil { // else reap did so
		s.endOldStack()
	}
	h.groups.remove(s.name)
	if h.close(s, w, e) {
		h.removeSlot(s)
	}
}

// close forgets a dead supervisor, and settles the attempt w that it had if e is
// its end; it reports whether its folder is to go.
func (h *Handler) close(s *slot, w *work, e *ended) (unused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e != nil {
		s.current = nil
		h.settle(w, e)
	}
	s.detach()
	return h.dropIfUnused(s)
}

// lastWord returns how an attempt ended whose supervisor is dead. One without a
// result has vanished, or is an orphan: what may be left of it is killed first. seen is what
// this broker saw of it, nil if the supervisor died before.
func (h *Handler) lastWord(s *slot, name string, seen *sighting) *ended {
	path := filepath.Join(s.dir, "journal")
	f, err := outputs.OpenRegular(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return h.orphan(vanished(name, "its journal cannot be read: "+err.Error()), seen)
	}
	defer f.Close()
	lines, err := readJournal(f)
	if err != nil {
		return h.orphan(vanished(name, err.Error()), seen)
	}
	for _, l := range lines {
		if l.End != nil && l.End.Name == name {
			return l.End
		}
	}
	e := h.unended(s, name, lines, seen)
	h.sweep(s)
	e.Out, e.Err = h.rescue(s, name, 0), h.rescue(s, name, 1)
	if _, err := appendLine(f, line{End: e}); err != nil {
		e.Result.Detail += "; " + err.Error()
	}
	return e
}

// unended is the end of an attempt that its dead supervisor has not ended: it has vanished,
// unless the journal proves that it never began.
func (h *Handler) unended(s *slot, name string, lines []line, seen *sighting) *ended {
	e := vanished(name, "its supervisor died")
	h.mu.Lock()
	sick := s.sick
	h.mu.Unlock()
	up, restarted := false, false
	for _, l := range lines {
		switch {
		case l.Sup != nil && l.Sup.Boot != h.boot:
			e.Result.Detail = "the machine was restarted"
			up, restarted = true, true // and that took the line with it, for all that is known
		case l.Run != nil && l.Run.Name == name:
			e.Result.Started = l.Run.At
		case l.Up != nil:
			up = true
		case l.Sick != nil:
			sick = *l.Sick
		}
	}
	if sick == "" && !up {
		sick = "its supervisor died before it served (are there processes and memory for it?): see " + h.logPath()
	}
	if sick != "" && e.Result.Started.IsZero() {
		e.Result = watchdog.NotBegun(&watchdog.Trouble{Cause: errors.New(sick)})
	}
	if sick != "" || restarted { // it gave up by itself
		return e
	}
	return h.orphan(e, seen)
}

func vanished(name, why string) *ended {
	return &ended{Name: name, At: time.Now(), Result: executor.Result{Cause: executor.Vanished, Detail: "lost: " + why}}
}

// sweep kills what a dead supervisor left running: its cgroup, and every
// process that carries the slot's mark.
func (h *Handler) sweep(s *slot) {
	s.endOldStack()
	const rounds = 50 // a second, if all that is left is between two programs
	for range rounds {
		h.groups.killIn(s.name)
		left, unsure := marked(s.workMark())
		if len(left) == 0 && !unsure {
			return
		}
		for _, p := range left {
			p.signal(unix.SIGKILL)
			awaitExit(p, 100*time.Millisecond)
		}
		if len(left) == 0 {
			<-time.After(unsurePause)
		}
	}
}

// unsurePause is what a process is given to come to its new program.
const unsurePause = 20 * time.Millisecond

// awaitExit waits until a process is gone, at most for d.
func awaitExit(p process, d time.Duration) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(d.Milliseconds()))
}

// rescue moves the output of a lost attempt to its place.
func (h *Handler) rescue(s *slot, name string, stream int) int64 {
	from := filepath.Join(s.dir, attempts.Streams[stream])
	st, err := os.Stat(from)
	if err != nil || st.Size() == 0 {
		if st, err = os.Stat(logPath(h.cfg.Dir, name, stream)); err != nil { // where a sandbox's was moved already
			return 0
		}
		return st.Size()
	}
	if err = os.Rename(from, logPath(h.cfg.Dir, name, stream)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", name).Msg("the output of a lost attempt cannot be kept")
	}
	return st.Size()
}
