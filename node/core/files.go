package core

import (
	"errors"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// Files of another site's task are fetched between its record and its start (step 6). Meanwhile it holds its machine,
// and its record says that nothing of it was started. Once they are here it is looked at as a new assignment is: lease
// and bound may be others by then.

// stepFiles takes what happened to the files of an attempt.
func (c *Core) stepFiles(ev Event, fx *Effects) {
	switch ev := ev.(type) {
	case PreparingEvent:
		if a := c.attempts.Find(ev.ID); a != nil {
			a.InBytes = max(a.InBytes, ev.InBytes)
			c.attempts.Prepare(a, fx)
		}
	case StagedEvent:
		c.handleStaged(ev, fx)
	case UnstagedEvent:
		c.handleUnstaged(ev, fx)
	case CollectedEvent:
		c.handleCollected(ev, fx)
	case CollectWaitsEvent:
		if a := c.attempts.Find(ev.ID); a != nil && a.Collecting {
			c.attempts.Wait(a)
			c.seen = 0 // it may have been stopped before
		}
	case RoomEvent:
		c.machines.SetRoom(ev.Room)
		for _, job := range ev.Fit {
			c.inputs.Fits(job)
		}
	}
}

// mayStage reports whether files of another site's task may be fetched now. If not, it has declined the task.
func (c *Core) mayStage(task *executor.Task, as fsm.Assignment) bool {
	if why := c.bounds.Unbound(c.machines.HandlerOf(as.Machine), task); why != "" {
		c.decline(as, trouble.DeclinedUnbound, why)
		return false
	}
	return !c.restsFor(as)
}

// restsFor reports whether a job or its owner rests whose files could not be had. If so, it has declined the task.
func (c *Core) restsFor(as fsm.Assignment) bool {
	f, why := c.inputs.Resting(as.Job)
	if why != "" {
		c.declineFiles(as.AttemptRef, c.machines.HandlerOf(as.Machine), f, why)
	}
	return why != ""
}

// declineFiles hands back a task whose files cannot be had.
func (c *Core) declineFiles(ref command.AttemptRef, handler string, f inputs.Fault, why string) {
	class := classOf(f)
	c.tallies.Decline(handler, class)
	c.proposeDecline(ref, class, c.inputs.Alike(ref.Job, f), why)
}

// classOf returns why a task is declined whose files cannot be had.
func classOf(f inputs.Fault) trouble.DeclineClass {
	switch f {
	case inputs.Unfit:
		return trouble.DeclinedUnfit
	case inputs.Cancelled:
		return trouble.DeclinedClosed
	case inputs.Away, inputs.Refused, inputs.NoRoom, inputs.Broken, inputs.Full:
	}
	return trouble.DeclinedFiles
}

// handleStaged has an attempt begin whose files are here, unless it is to end.
func (c *Core) handleStaged(ev StagedEvent, fx *Effects) {
	a := c.attempts.Find(ev.ID)
	if a == nil || !a.Staging {
		return
	}
	ref, err := c.attempts.Ref(ev.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	c.inputs.Had(ref.Job)
	a.InBytes = ev.InBytes
	if due, why := a.Due(); due {
		c.endUnstarted(a, executor.Result{Cause: executor.Stopped, Detail: why}, fx)
		return
	}
	a.Staged = true
	c.examineAgain(ref)
}

// beginStaged starts an attempt whose files are here, as soon as it may.
func (c *Core) beginStaged(a *attempts.Attempt, as fsm.Assignment, s StateReader, fx *Effects) {
	if !c.leased() {
		return
	}
	start, why := c.bounds.Fence(a.Handler, c.lease.until, &a.Record, &a.Held().Task, &as, s)
	switch {
	case start:
		c.attempts.Begin(a, fx)
	case why != "":
		c.attempts.Drop(a, fx)
		c.decline(as, trouble.DeclinedUnbound, why)
	}
}

// handleUnstaged settles an attempt whose files cannot be had: it ends as it was to, it is handed back, or its task
// fails because nobody could ever run it.
func (c *Core) handleUnstaged(ev UnstagedEvent, fx *Effects) {
	a := c.attempts.Find(ev.ID)
	if a == nil || a.Accepted || a.Ended != nil {
		return
	}
	if due, why := a.Due(); due {
		c.endUnstarted(a, executor.Result{Cause: executor.Stopped, Detail: why}, fx)
		return
	}
	if ev.Fault == inputs.Broken {
		c.endUnstarted(a, executor.Result{Cause: executor.NoStart, Detail: ev.Why}, fx)
		return
	}
	ref, err := c.attempts.Ref(ev.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	if a.IsOwnedBy(c.site) && ev.Fault != inputs.Cancelled { // this site's own trouble
		c.handleRefused(RefusedEvent{ev.ID, errors.New(ev.Why)}, fx)
		return
	}
	if a.Home {
		c.home.RequeueReturned(a, executor.ErrBusy, fx)
		return
	}
	c.inputs.Failed(ref.Job, ev.Fault, ev.Why)
	c.bounds.Forget(ev.ID)
	c.attempts.Drop(a, fx)
	c.declineFiles(ref, a.Handler, ev.Fault, ev.Why)
}

// stopAttempt has an attempt end. One whose files are here and that waits for its lease or its bound ends at once: no
// handler has it, and nothing is fetched for it any more whose end could be heard.
func (c *Core) stopAttempt(a *attempts.Attempt, why string, fx *Effects) {
	c.attempts.Stop(a, why, fx)
	if a.Staged {
		_, why = a.Due()
		c.endUnstarted(a, executor.Result{Cause: executor.Stopped, Detail: why}, fx)
	}
}

// endUnstarted ends an attempt before its start. Another site's is charged for the time in which its files were
// fetched.
func (c *Core) endUnstarted(a *attempts.Attempt, r executor.Result, fx *Effects) {
	a.Stopping, _ = a.Due()
	c.bounds.Forget(a.ID)
	if len(a.Inputs) > 0 && !a.IsOwnedBy(c.site) {
		a.StagedMs, r.Run = 0, c.attempts.StagingTime(a)
		r.Started = c.now.Wall.Add(-r.Run).Truncate(time.Millisecond)
	}
	c.settleEnd(a, r, fx)
}

// handleCollected settles the end of an attempt whose outputs were looked at.
func (c *Core) handleCollected(ev CollectedEvent, fx *Effects) {
	a := c.attempts.Find(ev.ID)
	if a == nil || !a.Collecting {
		return
	}
	a.Collecting, a.Output = false, ev.Output
	r := ev.Result
	switch {
	case ev.Ended:
		a.Stopping = true
		r.Cause, r.Detail = executor.Stopped, a.Unwanted()
	case ev.Lost != "" && r.Succeeded(): // this site's fault: a loss, not a failure
		r.Cause, r.Detail = executor.Stopped, ev.Lost
	case ev.Lost != "" && r.Cause != executor.Stopped: // it has failed all the same
		r.Detail = strings.TrimPrefix(r.Detail+"; "+ev.Lost, "; ")
	case ev.Failed != "" && r.Succeeded():
		r.Cause, r.Detail = executor.NoStart, ev.Failed // it counts as failed
	case ev.Note != "":
		r.Detail = strings.TrimPrefix(r.Detail+"; "+ev.Note, "; ")
	}
	c.settleEnd(a, r, fx)
}
