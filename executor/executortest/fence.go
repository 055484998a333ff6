package executortest

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// foreign returns a task with a fence that far away; it tells when it is dead.
func (r *Rig) foreign(d time.Duration) (executor.Task, <-chan struct{}) {
	r.Helper()
	fifo := r.fifo()
	t := r.shell(`exec 3>` + fifo + `; trap "" TERM; ` + forever)
	t.Fence = executor.Boottime() + int64(d)
	return t, r.holders(fifo)
}

func (r *Rig) lease() time.Duration { return r.env.Grace + 1500*time.Millisecond + r.env.Slack }

// testFence: dead at the fence, not a moment later, though it ignores TERM.
func testFence(r *Rig) {
	t, gone := r.foreign(r.lease())
	id := r.Begin(t)
	r.within(gone, "it is dead")
	if now := executor.Boottime(); now > t.Fence {
		r.Errorf("dead %s after its fence", time.Duration(now-t.Fence))
	}
	if res := r.AwaitEnd(id); res.Cause != executor.Fenced {
		r.Errorf("got %+v, want Fenced", res)
	}
}

// testFenceMoves: extended it lives on, and an own task has no fence at all.
func testFenceMoves(r *Rig) {
	ext := r.Handler.(executor.Extender)
	own := r.Begin(r.shell(forever))
	t, gone := r.foreign(r.lease()) // from now on: its own start alone must be done before the fence
	id := r.Begin(t)
	moved := t.Fence + int64(2*time.Second)
	r.Must(ext.Extend(moved))
	r.Must(ext.Extend(t.Fence)) // never backwards
	r.within(gone, "it is dead")
	if now := executor.Boottime(); now < t.Fence || now > moved {
		r.Errorf("dead %s after the first fence, want between 0 and 2s", time.Duration(now-t.Fence))
	}
	if res := r.AwaitEnd(id); res.Cause != executor.Fenced {
		r.Errorf("got %+v, want Fenced", res)
	}
	if _, dead := r.Ended[own]; dead {
		r.Error("a fence ended an own task")
	}
}

// testFenceAlone: nobody is there to kill it, and yet it dies.
func testFenceAlone(r *Rig) {
	t, gone := r.foreign(r.lease())
	r.AwaitRunning(r.Begin(t))
	r.Must(r.Close())
	r.within(gone, "it is dead")
	if now := executor.Boottime(); now > t.Fence {
		r.Errorf("dead %s after its fence", time.Duration(now-t.Fence))
	}
	st := r.find(r.Open(), t.ID)
	if st.Running {
		r.AwaitEnd(t.ID)
	} else if st.Ended.Cause != executor.Fenced {
		r.Errorf("got %+v, want Fenced", st.Ended)
	}
}

// testFencePassed: no process ever runs.
func testFencePassed(r *Rig) {
	t := r.shell("echo ran")
	t.Fence = executor.Boottime() - 1
	if res := r.run(t); res.Cause != executor.Fenced {
		r.Errorf("got %+v, want Fenced", res)
	}
	if r.Started[t.ID] || r.Written(t.ID, "stdout") != "" {
		r.Error("it ran after its fence")
	}
}
