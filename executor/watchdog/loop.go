package watchdog

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Run starts the task by start, which calls Fork, and sees it to its end: when Run returns, no
// process of the attempt is left.
func (w *Watch) Run(start func() error) executor.Result {
	w.plan = plan{Fence: w.Task.Fence, Grace: int64(w.Grace)}
	if w.Out != nil {
		w.Out.begin()
	}
	if w.plan.tooLate(executor.Boottime(), w.Fence.Load()) {
		return Late()
	}
	if err := start(); err != nil {
		w.tellWhole(err)
		return NotBegun(err)
	}
	if w.Task.Timeout > 0 {
		w.plan.timeOut(w.Began, w.Task.Timeout)
	}
	w.Link.Begun()
	w.untilExit()
	r := executor.Result{Cause: executor.Exited, Started: w.Started, Run: time.Duration(executor.Boottime() - w.Began)}
	w.reapAll(func() { w.signal(unix.SIGKILL) })
	w.explain(&r)
	return r
}

// explain says how the attempt ended. REQUIRES: no process of it is left.
func (w *Watch) explain(r *executor.Result) {
	if w.child >= 0 {
		unix.Close(w.child)
	}
	var e End
	w.Link.Ended(&e)
	r.Usage = e.Group.or(w.Used)
	e.Status, e.Why, e.Over = w.Status, w.why, w.over
	w.plan.explain(r, w.Task, e)
}

// untilExit returns when the task's own process has ended, by itself or by us.
func (w *Watch) untilExit() {
	w.look, w.pace = Never, minLook
	if w.Out != nil {
		w.look = executor.Boottime() + w.pace
	}
	err := w.watchChild()
	for err == nil && !w.Exited {
		if wake := w.act(executor.Boottime()); !w.Exited {
			err = w.await(wake)
		}
	}
	if err != nil {
		w.giveUp(err)
	}
}

func (w *Watch) watchChild() error {
	if w.child < 0 {
		return nil
	}
	return w.Sources.Add(w.child, FromChild)
}

// act does what the clock asks for, and returns when to do so again.
func (w *Watch) act(now int64) int64 {
	due := w.Link.Due(now)
	if w.over != "" {
		w.signal(unix.SIGKILL)
	}
	act, wake := w.plan.step(now, w.Fence.Load(), w.stop)
	switch act {
	case term:
		w.signal(unix.SIGTERM)
		w.signal(unix.SIGCONT)
	case kill:
		w.signal(unix.SIGKILL)
	case rest:
	}
	if now >= w.look {
		w.reap() // orphans that the task left to us
		w.pace = w.Clerk.look(w.Out, w.MaxLog, w.pace)
		w.look = now + w.pace
	}
	return min(wake, due, w.look)
}

// await waits for what happens until wake, and takes it.
func (w *Watch) await(wake int64) error {
	from, err := w.Sources.Wait(wake)
	if err != nil {
		return err
	}
	w.Link.Heard(from)
	if from&FromChild != 0 { // after Heard, which drains the bell: who ends from now on rings again
		w.reap()
	}
	return nil
}

// giveUp ends an attempt that cannot be watched any more rather than lose it.
func (w *Watch) giveUp(failed error) {
	_, _ = w.plan.step(executor.Boottime(), w.Fence.Load(), true)
	w.Stop("its watchdog cannot go on: " + failed.Error())
	w.signal(unix.SIGKILL)
	for !w.Exited {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(w.Pid, &ws, 0, &ru)
		if w.Exited = !errors.Is(err, unix.EINTR); pid == w.Pid {
			w.count(&ru)
			w.Status = syscall.WaitStatus(ws)
		}
	}
}
