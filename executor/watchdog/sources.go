package watchdog

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Source is what a watchdog is woken by; several are a set.
type Source int32

// Sources of a watchdog.
const (
	FromChild   Source = 1 << iota // a process has ended
	FromHandler                    // its handler says something
	FromSignal                     // a signal has come
	fromClock                      // not told: whoever waits looks at the clock
)

// Sources is an epoll set that the Go runtime's own poller waits for. A thread that
// blocks in poll itself would be taken for one that is stuck in a system call: the
// runtime's monitor wakes every 20 µs until it has given the processor away, to
// another thread that finds nothing to do. That was a quarter of a supervisor's time.
type Sources struct {
	set  *os.File
	raw  syscall.RawConn
	look func(fd uintptr) bool // collects into from
	from Source
	err  error

	timer int   // timerfd on CLOCK_BOOTTIME, which goes on while the machine is suspended
	armed int64 // for this moment, Never = not
}

// NewSources makes a set that nothing but the clock wakes.
func NewSources() (*Sources, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make poll set: %w", err)
	}
	s := &Sources{armed: Never}
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
	return s, s.Add(s.timer, fromClock)
}

// Add has a file wake as that source while there is something to read; closing it takes it out.
func (s *Sources) Add(fd int, source Source) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(source)}
	if err := s.control(unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch file %d: %w", fd, err)
	}
	return nil
}

// Drop takes out a file that stays open.
func (s *Sources) Drop(fd int) { _ = s.control(unix.EPOLL_CTL_DEL, fd, nil) }

func (s *Sources) control(op, fd int, ev *unix.EpollEvent) (err error) {
	cerr := s.raw.Control(func(set uintptr) { err = unix.EpollCtl(int(set), op, fd, ev) })
	return errors.Join(cerr, err)
}

// Wait returns when something happens, and from where, or when wake (CLOCK_BOOTTIME ns) has come.
func (s *Sources) Wait(wake int64) (Source, error) {
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

func (s *Sources) arm(wake int64) error {
	spec := unix.ItimerSpec{}
	if wake != Never {
		spec.Value = unix.NsecToTimespec(max(wake, 1))
	}
	if err := unix.TimerfdSettime(s.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	s.armed = wake
	return nil
}

// collect asks the set without waiting; false: there is nothing.
func (s *Sources) collect(fd uintptr) bool {
	var events [4]unix.EpollEvent
	n, err := unix.EpollWait(int(fd), events[:], 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		s.err = fmt.Errorf("poll: %w", err)
		return true
	}
	for _, ev := range events[:max(n, 0)] {
		s.from |= Source(ev.Fd)
	}
	return n != 0
}
