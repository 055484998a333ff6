package executortest

import (
	"errors"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// boundTimeout is short, for a suite that waits for it.
const boundTimeout = time.Second

// bound asks the handler how long a task can live.
func (r *Rig) bound(t executor.Task) (time.Duration, bool) {
	return r.Handler.(executor.Bounded).Bound(t)
}

// limited returns a deaf foreign task with a timeout and a fence just far enough; it
// tells when it is dead.
func (r *Rig) limited() (executor.Task, <-chan struct{}) {
	r.Helper()
	fifo := r.fifo()
	t := r.shell(`exec 3>` + fifo + `; trap "" TERM; ` + forever)
	t.Timeout = boundTimeout
	d, ok := r.bound(t)
	if !ok || d < t.Timeout || d > r.env.Patience {
		r.Fatalf("bound %s, %v of a task with a timeout of %s", d, ok, t.Timeout)
	}
	t.Fence = executor.Boottime() + int64(d+time.Second) // for a slow Start
	return t, r.holders(fifo)
}

// testBound: dead before its fence by its own limit, though nobody asks.
func testBound(r *Rig) {
	t, gone := r.limited()
	id := r.Begin(t)
	r.within(gone, "it is dead")
	if now := executor.Boottime(); now > t.Fence {
		r.Errorf("dead %s after its fence", time.Duration(now-t.Fence))
	}
	if res := r.AwaitEnd(id); res.Cause != executor.TimedOut && res.Cause != executor.Fenced {
		r.Errorf("got %+v, want TimedOut or Fenced", res)
	}
}

// testBoundAlone: nobody is there to kill it, and yet it dies.
func testBoundAlone(r *Rig) {
	t, gone := r.limited()
	r.Begin(t)
	r.Must(r.Close())
	r.within(gone, "it is dead")
	if now := executor.Boottime(); now > t.Fence {
		r.Errorf("dead %s after its fence", time.Duration(now-t.Fence))
	}
	if st := r.find(r.Open(), t.ID); st.Running {
		r.AwaitEnd(t.ID)
	}
}

// testBoundLimit: a longer timeout is a longer bound, whatever the fence.
func testBoundLimit(r *Rig) {
	t := r.shell(forever)
	t.Timeout = time.Minute
	short, ok := r.bound(t)
	t.Timeout = time.Hour
	t.Fence = 1
	long, also := r.bound(t)
	if !ok || !also || short < time.Minute || long < time.Hour {
		r.Errorf("bounds %s, %v and %s, %v of timeouts of a minute and an hour", short, ok, long, also)
	}
}

// testBoundLate: what could outlive its fence does not begin.
func testBoundLate(r *Rig) {
	t := r.shell("echo ran")
	t.Timeout = time.Minute
	d, _ := r.bound(t)
	t.Fence = executor.Boottime() + int64(d/2)
	if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrLate) {
		r.Errorf("got %v, want ErrLate", err)
	}
	for _, st := range r.reopen() {
		if st.ID == t.ID {
			r.Errorf("got %+v, want nothing of it", st)
		}
	}
}
