package watchdog

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// reaper collects the dead children of a process that all orphans of its attempt
// become children of, and notes the end of one of them.
type reaper struct {
	Pid    int                // the task's own process
	Status syscall.WaitStatus // valid once Exited
	Exited bool
	Used   executor.Usage // of all that were reaped
}

// reap collects without waiting; left says that some children live.
func (r *reaper) reap() (left bool) {
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		default:
			r.count(&ru)
			if pid == r.Pid && !r.Exited { // later an orphan may have its number
				r.Status, r.Exited = syscall.WaitStatus(ws), true
			}
		}
	}
}

// count adds what a child has used, with all those that it had waited for.
func (r *reaper) count(ru *unix.Rusage) {
	const kibibyte = 1 << 10 // the unit of Maxrss
	r.Used.User += time.Duration(ru.Utime.Nano())
	r.Used.System += time.Duration(ru.Stime.Nano())
	r.Used.PeakMemory = max(r.Used.PeakMemory, ru.Maxrss*kibibyte)
	r.Used.MemoryFrom, r.Used.TimeFrom = executor.UsageRusage, executor.UsageRusage
}

// reapAll kills what the task left behind until nothing is: no children means
// no descendants.
func (r *reaper) reapAll(kill func()) {
	pause := int64(time.Millisecond)
	for r.reap() {
		kill()
		until := unix.NsecToTimespec(pause)
		// The dying are reported to nobody here; such leftovers are rare.
		_, _ = unix.Ppoll(nil, &until, nil)
		pause = min(pause*2, rekill)
	}
}
