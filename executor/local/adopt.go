package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Adopt implements executor.Handler: it reads every slot's journal. A slot
// whose journal is locked has a living supervisor.
func (h *Handler) Adopt(ctx context.Context) ([]executor.State, error) {
	slots := filepath.Join(h.cfg.Dir, "slots")
	h.tellLeftovers(slots)
	found, _ := os.ReadDir(slots) // as far as they can be read, as below
	if err := h.aside.AdoptEach(ctx, attempts.Adoption{
		Dir: slots, What: "slot", One: h.adoptSlot,
		GiveUp: h.abandonSlot,
	}); err != nil {
		return nil, err
	}
	h.endDeadStacks(found)
	h.groups.sweep(h.isAlive)
	h.mu.Lock()
	defer h.mu.Unlock()
	states, err := h.attempts.Adopted()
	if err != nil {
		return nil, err
	}
	h.dropStrayLogs()
	for _, name := range h.strayWorks() {
		h.life.Go(func() { h.dropWork(name) })
	}
	h.life.Go(h.warm)
	h.life.Go(func() { h.aside.Run(h.attempts.Quit) })
	return states, nil
}

// isAlive reports whether a slot has a supervisor, as far as this broker knows.
func (h *Handler) isAlive(slot string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[slot] != nil
}

// endDeadStacks ends the stacks of slots whose supervisors are no more: one that hangs has not seen that. They are
// looked for once, and not for each of many slots.
func (h *Handler) endDeadStacks(slots []os.DirEntry) {
	endStacks(func(slot string) bool {
		return !h.isAlive(slot) && slices.ContainsFunc(slots, func(e os.DirEntry) bool { return e.Name() == slot })
	})
}

// tellLeftovers has the log say that slots without a journal are removed before anything
// starts: one that is very deep takes long.
func (h *Handler) tellLeftovers(slots string) {
	entries, _ := os.ReadDir(slots) // whoever adopts them says why it cannot
	left := 0
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(slots, e.Name(), "journal")); errors.Is(err, os.ErrNotExist) {
			left++
		}
	}
	if left > 0 {
		h.cfg.Logger.Info().Int("slots", left).Str("folder", slots).
			Msg("removing what is left of slots of an earlier broker; the broker starts after that, and deep folders take a while")
	}
}

// slotIn returns the slot of that name below a handler's folder.
func slotIn(dir, name string) *slot {
	return &slot{name: name, dir: filepath.Join(dir, "slots", name)}
}

// abandonSlot ends what runs of a slot that cannot be adopted: whatever its supervisor
// has, nobody would know of.
func (h *Handler) abandonSlot(name string) {
	s := slotIn(h.cfg.Dir, name)
	s.expel()
	h.sweep(s)
}

// adoptSlot takes over one slot and its attempts, or nothing of it.
func (h *Handler) adoptSlot(name string) error {
	s := slotIn(h.cfg.Dir, name)
	f, err := outputs.OpenRegular(filepath.Join(s.dir, "journal"), os.O_RDWR|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		return watchdog.RemoveTree(s.dir) // a crash before anything was written
	}
	if err != nil {
		return err
	}
	s.journal = f
	s.dead = !locked(f)
	lines, err := readJournal(f)
	if err != nil {
		f.Close()
		return err
	}
	if !s.dead {
		var found bool
		if found, err = s.findSupervisor(lines); err != nil {
			f.Close()
			return err
		}
		s.dead = !found
	}
	// Only now is it certain that a slot taken for dead will write no more.
	if s.dead {
		if _, err = f.Seek(0, 0); err == nil {
			lines, err = readJournal(f)
		}
		if err != nil {
			f.Close()
			return err
		}
	}
	h.takeOver(s, lines)
	return nil
}

// expel kills a supervisor that cannot be talked to, by its folder, which it never
// leaves; its task dies with it.
func (s *slot) expel() {
	for _, pid := range pids() {
		proc := "/proc/" + strconv.Itoa(pid)
		cwd, err := os.Readlink(proc + "/cwd")
		if err != nil || cwd != s.dir {
			continue
		}
		args, err := os.ReadFile(proc + "/cmdline")
		p, ok := readProcess(pid)
		if part := bytes.Split(args, []byte{0}); err != nil || !ok || len(part) < 2 ||
			string(part[1]) != superviseVerb {
			continue
		}
		p.signal(unix.SIGKILL)
		awaitExit(p, expelWait)
	}
}

// expelWait is how long a killed supervisor is waited for.
const expelWait = 5 * time.Second

// locked reports whether a living process holds the journal.
func locked(f *os.File) bool {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return true
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return false
}

// findSupervisor gets hold of the process that has the lock; false means that
// it is gone. As long as the lock is held the pid in the journal is its own.
func (s *slot) findSupervisor(lines []line) (found bool, err error) {
	for _, l := range lines {
		if l.Sup != nil {
			s.pid = l.Sup.Pid
		}
	}
	if s.pid == 0 {
		return true, nil // its broker died before naming it: it got no attempt and leaves
	}
	fd, err := unix.PidfdOpen(s.pid, unix.PIDFD_NONBLOCK)
	if attempts.IsPassing(err) {
		return false, fmt.Errorf("find supervisor %d: %w", s.pid, err)
	}
	if err != nil {
		return false, nil //nolint:nilerr // there is no such process
	}
	if !locked(s.journal) {
		unix.Close(fd)
		return false, nil
	}
	s.pidfd = os.NewFile(uintptr(fd), "pidfd")
	return true, nil
}

// takeOver notes a slot and its attempts.
func (h *Handler) takeOver(s *slot, lines []line) {
	works := h.replay(s, lines)
	for _, w := range works {
		h.collect(s, w.Name)
	}
	for _, w := range works {
		if w.Ended == nil && s.dead {
			w.Ended = h.lastWord(s, w.Name, nil).end()
		}
	}
	h.keepLast(s, works)
	if s.dead {
		h.groups.remove(s.name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range works {
		h.enter(s, w)
	}
	if s.dead {
		s.detach()
		s.journal = nil
		if h.dropIfUnused(s) {
			h.life.Go(func() { h.removeSlot(s) })
		}
		return
	}
	h.slots[s.name] = s
	if s.pidfd != nil {
		h.life.Add(1)
		go h.awaitSupervisor(s)
	}
}

// enter notes one attempt. REQUIRES: h.mu held.
func (h *Handler) enter(s *slot, w *work) {
	if old := h.attempts.Get(w.Name); old != nil {
		// Handed to a second supervisor after the first had died: the one that
		// did something with it counts.
		if old.Ended == nil || (w.Ended != nil && evidence(w) <= evidence(old)) {
			return
		}
		old.slot.refs--
	}
	h.attempts.Enter(w)
	s.refs++
	if w.Ended == nil {
		w.Hold = h.use.Adopt(w.Task.Need, w.Hold.CPUs)
		s.current = w
		return
	}
	close(w.Done)
	if w.Forgotten {
		h.attempts.Keep(w)
	}
}

// evidence ranks what an ended attempt's supervisor knew of it: that it never began, that
// it is gone, its end.
func evidence(w *work) int {
	switch w.Ended.Result.Cause {
	case executor.Declined:
		return 0
	case executor.Vanished, executor.Orphaned:
		return 1
	default:
		return 2
	}
}

// replay turns a journal into attempts, in the order of their start.
func (h *Handler) replay(s *slot, lines []line) []*work {
	var order []*work
	byName := map[string]*work{}
	restarted := false
	for _, l := range lines {
		switch {
		case l.Sup != nil:
			restarted = l.Sup.Boot != h.boot
		case l.Ask != nil:
			name := l.Ask.Task.ID.String()
			if !attempts.ValidName(name) || byName[name] != nil {
				continue
			}
			w := &work{
				Attempt: attempts.AdoptedAttempt(l.Ask.Task), limit: l.Ask.MaxLog, slot: s,
				running: make(chan struct{}),
			}
			w.Hold.CPUs = l.Ask.CPUs
			byName[name] = w
			order = append(order, w)
		case l.Run != nil && byName[l.Run.Name] != nil:
			w := byName[l.Run.Name]
			w.Began = l.Run.At
			w.runs()
		case l.End != nil && byName[l.End.Name] != nil:
			l.End.unseen(restarted)
			byName[l.End.Name].Ended = l.End.end()
		case l.Drop != nil && byName[*l.Drop] != nil:
			byName[*l.Drop].Forgotten = true
		case l.Void != nil:
			name := *l.Void
			order = slices.DeleteFunc(order, func(w *work) bool { return w.Name == name })
			delete(byName, name)
		}
	}
	return order
}

// awaitSupervisor waits for the end of a supervisor that an earlier broker started.
func (h *Handler) awaitSupervisor(s *slot) {
	defer h.life.Done()
	raw, err := s.pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			n, perr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return perr == nil && n > 0
		})
	}
	if err != nil {
		return // closed
	}
	// It is our own child if that earlier broker was a handler of this process.
	_, _ = unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
	h.gone(s)
}

func signalFile(f *os.File, sig unix.Signal) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err = raw.Control(func(fd uintptr) { serr = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(serr, syscall.ESRCH) {
		return nil // its end is on the way
	}
	return serr
}

// kinds are those of the supervisors that are started before they are needed.
func (h *Handler) kinds() []kind {
	n := min(h.cfg.Cores, 4)
	switch {
	case h.contain.whom == ContainNobody || h.contain.why != nil:
		return make([]kind, n)
	case h.contain.whom == ContainAll:
		return slices.Repeat([]kind{{contained: true}}, n)
	}
	return append(make([]kind, n), kind{contained: true}) // which owner will want more is not known
}

// warm starts a few supervisors, so that the first attempts need not wait.
func (h *Handler) warm() {
	for _, k := range h.kinds() {
		s, err := h.spawn(k)
		if err != nil {
			return // Start will meet the same and say so
		}
		h.mu.Lock()
		if h.attempts.Closed() {
			h.mu.Unlock()
			return
		}
		h.idle = append(h.idle, s)
		h.mu.Unlock()
	}
}
