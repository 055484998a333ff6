package local

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Sources that a supervisor waits for.
const (
	fromBroker = 1 << iota
	fromChild
	fromTerm
	fromTimer // not reported: whoever waits looks at the clock
)

// sources is an epoll set that the Go runtime's own poller waits for. A thread that
// blocks in poll itself would be taken for one that is stuck in a system call: the
// runtime's monitor wakes every 20 µs until it has given the processor away, to
// another thread that finds nothing to do. That was a quarter of a supervisor's time.
type sources struct {
	set  *os.File
	raw  syscall.RawConn
	look func(fd uintptr) bool // collects into from
	from int
	err  error

	timer int   // timerfd on CLOCK_BOOTTIME
	armed int64 // for this moment, watchdog.Never = not
	child int   // pidfd in the set, -1 = none
}

// newSources watches the broker's socket, and termed, which is readable after SIGTERM.
func newSources(broker, termed int) (*sources, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make poll set: %w", err)
	}
	s := &sources{armed: watchdog.Never, child: -1}
	if s.timer, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make timer: %w", err)
	}
	if err = unix.SetNonblock(fd, true); err != nil { // else os would not give it to the poller
		return nil, fmt.Errorf("make poll set: %w", err)
	}
	s.set = os.NewFile(uintptr(fd), "sources")
	if s.raw, err = s.set.SyscallConn(); err != nil {
		return nil, fmt.Errorf("make poll set: %w", err)
	}
	s.look = s.collect
	return s, errors.Join(s.add(broker, fromBroker), s.add(termed, fromTerm), s.add(s.timer, fromTimer))
}

func (s *sources) add(fd, source int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(source)}
	if err := s.control(unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch file %d: %w", fd, err)
	}
	return nil
}

// drop stops watching a file that stays open.
func (s *sources) drop(fd int) { _ = s.control(unix.EPOLL_CTL_DEL, fd, nil) }

func (s *sources) control(op, fd int, ev *unix.EpollEvent) (err error) {
	cerr := s.raw.Control(func(set uintptr) { err = unix.EpollCtl(int(set), op, fd, ev) })
	return errors.Join(cerr, err)
}

// wait returns when something happens or wake (CLOCK_BOOTTIME ns) has come. child
// is a pidfd, or -1; closing it takes it out of the set.
func (s *sources) wait(child int, wake int64) (from int, err error) {
	if child != s.child && child >= 0 {
		if err := s.add(child, fromChild); err != nil {
			return 0, err
		}
	}
	s.child = child
	if wake != s.armed {
		if err := s.arm(wake); err != nil {
			return 0, err
		}
	}
	s.from, s.err = 0, nil
	if err := s.raw.Read(s.look); err != nil {
		return 0, fmt.Errorf("poll: %w", err)
	}
	return s.from, s.err
}

func (s *sources) arm(wake int64) error {
	spec := unix.ItimerSpec{}
	if wake != watchdog.Never {
		spec.Value = unix.NsecToTimespec(max(wake, 1))
	}
	if err := unix.TimerfdSettime(s.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	s.armed = wake
	return nil
}

// collect asks the set without waiting; false: there is nothing.
func (s *sources) collect(fd uintptr) bool {
	var events [4]unix.EpollEvent
	n, err := unix.EpollWait(int(fd), events[:], 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		s.err = fmt.Errorf("poll: %w", err)
		return true
	}
	for _, ev := range events[:max(n, 0)] {
		s.from |= int(ev.Fd)
	}
	return n != 0
}
