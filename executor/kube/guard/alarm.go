package guard

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// alarm rings at a moment of CLOCK_BOOTTIME, which goes on while the machine is
// suspended; Go's own timers stop then.
type alarm struct {
	timer *os.File
	rings chan struct{} // capacity 1
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make timer: %w", err)
	}
	a := &alarm{timer: os.NewFile(uintptr(fd), "timer"), rings: make(chan struct{}, 1)}
	go a.listen()
	return a, nil
}

// listen tells of each ring until the alarm is closed.
func (a *alarm) listen() {
	var n [8]byte
	for {
		if _, err := a.timer.Read(n[:]); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default:
		}
	}
}

// set has it ring at that moment, and at no other.
func (a *alarm) set(at int64) error {
	spec := unix.ItimerSpec{}
	if at != watchdog.Never {
		spec.Value = unix.NsecToTimespec(max(at, 1))
	}
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	if err = errors.Join(cerr, err); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

func (a *alarm) close() { a.timer.Close() }
