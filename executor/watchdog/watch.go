package watchdog

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Fence is where a watchdog learns until when its attempt may live: a [Page] that its handler
// has mapped, too, or what it was answered last.
type Fence interface {
	// Load returns that moment, on CLOCK_BOOTTIME in nanoseconds. It waits for nobody.
	Load() int64
}

// Link is a watchdog's link to its handler. The loop calls it, and looks at no clock meanwhile:
// what touches a disk is left to the [Clerk].
type Link interface {
	// Begun tells that the task's process runs.
	Begun()
	// Due does what is due by now, and returns when there will be more to do.
	Due(now int64) (next int64)
	// Heard takes what has woken the loop, and drains the bells of these sources only: another one that rings
	// meanwhile wakes the loop next. A stop is asked for by [Watch.Stop].
	Heard(from Source)
	// Ended adds what is known of the end. No process of the attempt is left.
	Ended(e *End)
}

// Watch is a watchdog's work on one attempt: the loop that local's supervisors and the first
// processes of containers and pods have in common. One goroutine does it all.
type Watch struct {
	Task  executor.Task
	Grace time.Duration // between TERM and KILL
	Fence Fence
	Link  Link
	// Sources are what wakes the loop.
	Sources *Sources
	// Signal signals all of the attempt's processes, nil = SignalAll.
	Signal func(unix.Signal)
	// Bells: the end of a child is told by a bell, not by a pidfd, which not every kernel of a runtime class has.
	Bells bool
	// Out is bounded to MaxLog bytes each by the Clerk; nil = others bound it.
	Out    *Output
	MaxLog int64
	Clerk  *Clerk

	// Started and Began are when the task's process was forked, by the wall and since boot (ns): before, not after,
	// for a task may run for milliseconds until its watchdog gets a processor again.
	Started time.Time
	Began   int64
	reaper
	plan  plan
	child int // pidfd of the task's process, -1 = none
	stop  bool
	why   string // of the stop
	over  string // the bound that it has gone over
	look  int64  // when the output is looked at next
	pace  int64  // what Clerk.look returned
}

// Stop has the attempt ended by TERM, the grace, and KILL; why is "" if nobody says.
func (w *Watch) Stop(why string) { w.stop, w.why = true, cmp.Or(why, w.why) }

// GoneOver has the attempt killed at once for a bound that it has gone over: it would write on.
func (w *Watch) GoneOver(bound string) { w.over = bound }

func (w *Watch) signal(sig unix.Signal) {
	if w.Signal != nil {
		w.Signal(sig)
		return
	}
	SignalAll(sig)
}

// SignalAll signals every process of a pid namespace but this one, its first: in one go, so no
// fork escapes. All of them are of its own user, so that it needs no capability.
// REQUIRES: this process is that first one.
func SignalAll(sig unix.Signal) { _ = unix.Kill(-1, sig) }
