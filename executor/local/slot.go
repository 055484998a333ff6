package local

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// maxJournal is the size at which a supervisor is replaced, so that journals
// stay short.
const maxJournal = 1 << 20

// maxIdle bounds the supervisors kept warm.
const maxIdle = 32

// slot is a supervisor and its folder, as the handler sees them.
type slot struct {
	name, dir string
	pid       int
	journal   *os.File     // for appending; closed once the supervisor is dead
	writing   sync.Mutex   // held around a write and its measuring
	size      atomic.Int64 // of the journal, after our latest line
	// One of the two is nil: conn is the socket to a supervisor of our own,
	// pidfd watches one that an earlier broker started.
	conn  *os.File
	pidfd *os.File
	proc  *os.Process
	stack *os.Process // that has the sandbox's network, and ends with it; nil = it has none of its own
	names os.FileInfo // by which that finds the machine's name servers; nil = there is none
	// current is the attempt it has, nil = idle. Guarded by Handler.mu.
	current *work
	// refs counts attempts whose lines still matter. Guarded by Handler.mu.
	refs int
	dead bool
	// sick is why the supervisor said that it begins nothing any more. Guarded by Handler.mu.
	sick string
	// spent: its work folder is not there any more, or has files that could not be moved.
	// Guarded by Handler.mu.
	spent bool
	kind
	// owner is the only one whose tasks a sandbox serves, "" = nobody's yet. Guarded by
	// Handler.mu.
	owner string
	// served: it has ended an attempt, so all of its folder was made.
	served bool
}

// detach lets go of the supervisor; its reader or watcher ends.
// REQUIRES: Handler.mu held.
func (s *slot) detach() {
	for _, f := range []*os.File{s.conn, s.pidfd, s.journal} {
		if f != nil {
			f.Close()
		}
	}
}

// record appends a line of n bytes that ends at end. The supervisor writes only
// while it has an attempt.
func (s *slot) record(l line) (end int64, n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if n, err = appendLine(s.journal, l); err != nil {
		return 0, n, err
	}
	// After a write in append mode the position is the end of what was written.
	if end, err = s.journal.Seek(0, io.SeekCurrent); err != nil {
		return 0, n, fmt.Errorf("find place in journal: %w", err)
	}
	s.size.Store(end)
	return end, n, nil
}

// workMark returns the environment entry that every process of the slot carries.
func (s *slot) workMark() string { return watchdog.WorkdirVar + "=" + filepath.Join(s.dir, "work") }

// spawn starts a supervisor in a new slot.
func (h *Handler) spawn(k kind) (*slot, error) {
	h.mu.Lock()
	h.nslot++
	// Unique across lives of the broker and boots of the machine.
	name := strconv.FormatInt(nowUnix(), 36) + "-" + strconv.Itoa(h.nslot)
	h.mu.Unlock()
	s := slotIn(h.cfg.Dir, name)
	s.kind = k
	if err := h.makeFolder(s); err != nil {
		return nil, fmt.Errorf("make slot: %w", err)
	}
	if err := h.launch(s); err != nil {
		_ = watchdog.RemoveTree(s.dir)
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempts.Closed() {
		s.detach()
		s.release()
		return nil, attempts.ErrClosed
	}
	h.slots[name] = s
	h.life.Add(1)
	go h.listen(s)
	return s, nil
}

// launch forks the supervisor. The journal's lock goes with it: it is held
// exactly as long as that process lives.
func (h *Handler) launch(s *slot) (err error) {
	path := filepath.Join(s.dir, "journal")
	locked, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer locked.Close()
	if err = unix.Flock(int(locked.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock journal: %w", err)
	}
	if s.journal, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.journal.Close()
		return fmt.Errorf("make socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	defer theirs.Close()
	if err = unix.SetNonblock(pair[0], true); err == nil {
		s.conn = os.NewFile(uintptr(pair[0]), "broker")
		err = h.exec(s, []*os.File{theirs, h.desk.FenceFile, locked})
	}
	if err != nil {
		s.detach()
		h.reap(s)
		return err
	}
	if _, _, err = s.record(line{Sup: &owner{Pid: s.pid, Boot: h.boot}}); err != nil {
		s.detach()
		go h.reap(s) // it ends by that
	}
	return err
}

// release forgets the processes of a slot, which go on.
func (s *slot) release() {
	for _, p := range []*os.Process{s.proc, s.stack} {
		if p != nil {
			_ = p.Release()
		}
	}
}

// reap waits for the supervisor of a slot, whose end has begun, and ends its stack, in whose group nothing is then.
func (h *Handler) reap(s *slot) {
	if s.proc != nil {
		_, _ = s.proc.Wait()
	}
	endStack(s.stack, func() { h.groups.remove(s.name) })
}

// superviseVerb is the argument with which the program is a supervisor.
const superviseVerb = "supervise"

func (h *Handler) exec(s *slot, files []*os.File) error {
	cmd := exec.Command(h.cfg.Executable, superviseVerb)
	cmd.Dir, cmd.ExtraFiles, cmd.Stderr, cmd.Env = s.dir, files, h.stderr, supervisorEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.contained {
		groups, err := h.groups.lend(s.name, &h.contain.plan)
		if err != nil {
			return err
		}
		defer groups.close()
		h.enclose(cmd, s.kind, groups)
		if s.network == executor.NetworkOutbound {
			socket, err := h.addStack(s, cmd)
			if err != nil {
				return err
			}
			defer socket.Close()
		}
	} else {
		cmd.Args = append(cmd.Args, h.groups.arguments(s.name)...)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.proc, s.pid = cmd.Process, cmd.Process.Pid
	return nil
}

// enclose has a supervisor be the first process of a sandbox.
func (h *Handler) enclose(cmd *exec.Cmd, k kind, groups lent) {
	plan := h.contain.planOf(k)
	cmd.Env = append(cmd.Env, h.contain.planEntry(plan))
	cmd.SysProcAttr = plan.Attributes()
	cmd.Args = append(append(cmd.Args, "-sandbox"), groups.args...)
	cmd.Args = append(cmd.Args,
		"-scratch", strconv.FormatInt(h.cfg.Scratch, 10),
		"-clean", cmp.Or(h.cfg.cleanFor, cleanBound).String(),
		"-hangs", cmp.Or(h.cfg.hangFor, hangBound).String(),
		"-share", strconv.FormatInt(h.cfg.MemMiB/int64(h.cfg.Cores), 10))
	if groups.folder != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, groups.folder)
	}
	if groups.born != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(groups.born.Fd())
	}
}

// supervisorEnv is the environment of a supervisor.
func supervisorEnv() []string {
	// One thread polls and the rest sleeps; more would only cost memory.
	env := []string{"GOMAXPROCS=1", "GOTRACEBACK=all"}
	if race, set := os.LookupEnv("GORACE"); set { // a build with the race detector waits a second at exit
		env = append(env, "GORACE="+race)
	}
	return env
}

// listen hears one supervisor until it is gone or we are.
func (h *Handler) listen(s *slot) {
	defer h.life.Done()
	buf := make([]byte, maxPacket)
	for {
		n, err := s.conn.Read(buf)
		if err != nil || n == 0 {
			break
		}
		if l, ok := parseLine(buf[:n]); ok {
			if l.End != nil {
				h.collect(s, l.End.Name)
				h.keepCurrent(s, l.End)
			}
			h.heard(s, l)
		}
	}
	h.mu.Lock()
	left := h.attempts.Closed() && s.current != nil
	h.mu.Unlock()
	if left {
		// It finishes without us; a later life adopts it.
		s.release()
		return
	}
	h.reap(s)
	h.gone(s)
}

// retire lets an idle supervisor go. REQUIRES: h.mu held.
func (h *Handler) retire(s *slot) {
	s.conn.Close()
}
