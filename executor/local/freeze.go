package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// A task that watches how it is looked at (inotify) can move files to where the look has been. So it is frozen for a
// second look, where its group is of v2, if the disk has lost what the first one does not explain. Not always: a frozen
// task's calls end early, as after SIGSTOP (EINTR of epoll_wait, a short read), and not all programs expect that.
const (
	// shortFreeze may take any look; longFreeze is the most.
	shortFreeze = 100 * time.Millisecond
	longFreeze  = 2 * time.Second
	// thawedFactor is how many times as long as it was frozen a task runs: it loses a fiftieth of its time.
	thawedFactor = 49
	// settleFor is how long a group may take to stand still. Whoever has not by then ends one system call, and runs no
	// instruction of its own.
	settleFor = 10 * time.Millisecond
	// unexplained is the part of the bound that the disk may lose by others.
	unexplained = 4
)

// errLate: a look took longer than the task may be frozen.
var errLate = errors.New("not in the time for which a task may be frozen")

// freezer freezes the processes of a group of v2. KILL ends them all the same.
type freezer struct {
	dir    string
	mu     sync.Mutex
	frozen bool
}

// freezer returns the one of a sandbox's tasks, nil = their group is not of v2.
func (g *group) freezer() *freezer {
	if g.wanted.kill == "" {
		return nil
	}
	return &freezer{dir: g.wanted.kill, frozen: true} // by the attempt before, should its thaw have failed
}

// freeze returns when the group stands still, or does soon.
func (f *freezer) freeze() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := writeFile(f.dir, "cgroup.freeze", "1"); err != nil {
		return err
	}
	f.frozen = true
	return f.settle()
}

// settle waits until the kernel says that the group is frozen, up to a bound.
func (f *freezer) settle() error {
	events, err := os.Open(filepath.Join(f.dir, "cgroup.events"))
	if err != nil {
		return err
	}
	defer events.Close()
	text := make([]byte, 128)
	for end := executor.Boottime() + int64(settleFor); ; {
		n, err := events.ReadAt(text, 0)
		if n == 0 {
			return err
		}
		left := end - executor.Boottime()
		if left <= 0 || strings.Contains(string(text[:n]), "frozen 1") {
			return nil
		}
		changed := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
		wait := unix.NsecToTimespec(left)
		_, _ = unix.Ppoll(changed, &wait, nil) // interrupted, it reads once more
	}
}

// thaw lets the group go on, if it is frozen. What fails is tried again at the next look, and at the end.
func (f *freezer) thaw() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frozen {
		f.frozen = writeFile(f.dir, "cgroup.freeze", "0") != nil
	}
}

// suspects reports whether a task that has so much on the disk, by a look that took so long, may hide more.
func (s *scratch) suspects(used diskuse.Use, took time.Duration) bool {
	if s.freezer == nil || took > longFreeze || executor.Boottime() < s.stillAt {
		return false
	}
	lost, most := s.lost(), s.most.Bytes // by bytes alone: some file systems say any number of inodes
	return lost > most/2 && lost-used.Bytes > most/unexplained
}

// countStill counts while the task is frozen, at most twice as long as a look took that did not freeze it.
func (s *scratch) countStill(c *counter, took time.Duration) error {
	began, most := executor.Boottime(), min(max(2*took, shortFreeze), longFreeze)
	c.until = began + int64(most)
	err := s.freezer.freeze()
	late := time.AfterFunc(most, s.freezer.thaw) // a stalled disk keeps nobody frozen
	if err == nil {
		err = c.all()
	}
	late.Stop()
	s.freezer.thaw()
	now := executor.Boottime()
	s.stillAt = now + thawedFactor*(now-began)
	return err
}
