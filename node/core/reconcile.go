package core

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// reconcile compares the state with what the handlers run, and starts or stops
// the difference (step 6): what has changed since it last looked, what it wants to
// look at again, and everything if the state took something away or c.seen is 0.
// Each is a level: whatever led there, the assignment is as the state has it now.
func (c *Core) reconcile(s StateReader, fx *Effects) {
	again := c.again
	c.again = nil
	if change := s.SiteChange(c.site); change != c.seen {
		changed, whole := s.AssignmentsSince(c.site, c.seen)
		c.seen = change
		if whole {
			c.compare(changed, s, fx)
			return
		}
		for _, as := range changed {
			c.reconcileAssignment(as, s, fx)
		}
	}
	for _, ref := range again {
		if as, ok := s.Assignment(c.site, ref); ok {
			c.reconcileAssignment(as, s, fx)
		} else {
			delete(c.pledges.byID, c.last.attemptID(ref))
		}
	}
}

// compare looks at every assignment and at every attempt.
func (c *Core) compare(all []fsm.Assignment, s StateReader, fx *Effects) {
	wanted := make(map[executor.ID]bool, len(all))
	for _, as := range all {
		wanted[c.last.attemptID(as.AttemptRef)] = true
		c.reconcileAssignment(as, s, fx)
	}
	c.pledges.dropUnassigned(wanted)
	for id, a := range c.attempts {
		if !a.Home && !wanted[id] && a.ended == nil {
			a.fenced = true
			c.stop(a, "no longer assigned to this site", fx)
		}
	}
}

// reconcileAssignment does what one assignment asks for. To do it twice changes nothing.
func (c *Core) reconcileAssignment(as fsm.Assignment, s StateReader, fx *Effects) {
	id := c.last.attemptID(as.AttemptRef)
	a := c.attempts[id]
	switch {
	case a == nil && c.returned[id]: // the order will take it
	case a == nil && as.Stop:
		c.giveBack(id)
		c.ends = append(c.ends, command.Ended{AttemptRef: as.AttemptRef, Outcome: command.Stopped, Detail: "never started"})
	case a == nil:
		c.acceptAssignment(id, as, s, fx)
	case as.Stop && a.ended == nil:
		c.stop(a, as.StopWhy, fx)
	}
}

// giveBack: the assignment is not started here any more, whatever the state says
// until it has heard so.
func (c *Core) giveBack(id executor.ID) {
	c.returned[id] = true
	delete(c.pledges.byID, id)
}

// acceptAssignment starts an assignment, or declines it if the room is gone: home runs may
// have taken it while the assignment was on its way.
// Foreign work needs a lease; without one it is looked at again when it comes.
func (c *Core) acceptAssignment(id executor.ID, as fsm.Assignment, s StateReader, fx *Effects) {
	if c.handingBack {
		c.decline(as, trouble.DeclinedClosed, "the site leaves the federation")
		return
	}
	if c.full != nil { // its output would go to the disk that has no room
		c.decline(as, trouble.DeclinedClosed, "the site's disk is full")
		return
	}
	if as.Job.Site != c.site && !c.leased() {
		return
	}
	m, ok := c.machines[as.Machine]
	if !ok {
		c.decline(as, trouble.DeclinedGone, fmt.Sprintf("machine %s is gone", as.Machine))
		return
	}
	if c.isResting(as.Machine) {
		c.decline(as, trouble.DeclinedTrouble, "machine "+c.troubles.Text(as.Machine, c.now.Boot))
		return
	}
	if !m.hasSlot(c.used.tasks[as.Machine]) {
		c.decline(as, trouble.DeclinedBusy, fmt.Sprintf("%s runs %d tasks, as many as it may", as.Machine, m.slots))
		return
	}
	if !fits(c.limits.Open(m.Machine), c.used.all[as.Machine], as.Need) { // checked again: others share it
		c.decline(as, trouble.DeclinedBusy, fmt.Sprintf("no room on %s", as.Machine))
		return
	}
	rec := attemptRecord{ID: id, Machine: as.Machine, Need: executor.Resources(as.Need)}
	task, err := c.taskOf(rec, as.Job.Site, as.TimeoutMs, as.Payload)
	if err == nil && !m.takes(task.Image != "") {
		c.decline(as, trouble.DeclinedUnfit, fmt.Sprintf("machine %s runs %s only now", as.Machine, runsOf(m.Machine)))
		return
	}
	if err == nil && as.Job.Site != c.site && !c.fence(&rec, &task, as, s) {
		return
	}
	c.startAttempt(rec, task, err, fx)
}

// decline hands an assignment back that was not begun.
func (c *Core) decline(as fsm.Assignment, class trouble.DeclineClass, why string) {
	c.handBack(as.AttemptRef, c.machines[as.Machine].handler, class, why)
}

// handBack hands an assignment back, together with what is exposed now if that
// changed: a new offer lifts the bars of all that was declined before. Until the
// order has taken it, the assignment still stands in the state, and must not be
// started.
func (c *Core) handBack(ref command.AttemptRef, handler string, class trouble.DeclineClass, why string) {
	c.tallies.Decline(handler, class)
	d := &command.Decline{Attempts: []command.AttemptRef{ref}, Reason: command.Clip(why)}
	if o := c.exposedNow(); c.offerChanged(o) {
		c.stamp(o)
		d.Offer = o
	} else {
		c.offers.spare = o
	}
	c.offers.owed = c.offers.owed || class.Soon()
	id := c.last.attemptID(ref)
	c.giveBack(id)
	c.out.add(d, func(command.Result, StateReader, *Effects) {
		delete(c.returned, id)
		c.again = append(c.again, ref)
	})
}

// taskOf says what to run; the error is that of an unreadable payload.
func (c *Core) taskOf(rec attemptRecord, owner string, timeoutMs int64, payload []byte) (executor.Task, error) {
	task := executor.Task{
		ID: rec.ID, Owner: owner, Site: c.site, Machine: rec.Machine, Need: rec.Need,
		Timeout: time.Duration(timeoutMs) * time.Millisecond,
	}
	spec, err := c.last.specOf(payload)
	if err != nil {
		return task, fmt.Errorf("unreadable job: %w", err)
	}
	task.Command, task.Image, task.Env = spec.Command, spec.Image, spec.Env
	if spec.Indices.Len() > rec.ID.Task {
		if task.Env == nil {
			task.Env = map[string]string{}
		}
		task.Env[executor.IndexVar] = strconv.FormatUint(uint64(spec.Indices.At(rec.ID.Task)), 10)
	}
	return task, nil
}

// startAttempt records an attempt and has its handler start it after the sync; with
// err, why it cannot be, it ends at once.
func (c *Core) startAttempt(rec attemptRecord, task executor.Task, err error, fx *Effects) {
	rec.AssignedMs = c.now.Wall.UnixMilli()
	handler := c.machines[rec.Machine].handler
	a := &attempt{attemptRecord: rec, handler: handler, begun: c.now.Boot}
	c.attempts[rec.ID] = a
	c.used.add(a, 1)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketAttempts, a.recordKey(), rec))
	if err != nil {
		c.handleEnded(rec.ID, executor.Result{Cause: executor.NoStart, Detail: err.Error()}, fx)
		return
	}
	fx.Starts = append(fx.Starts, StartEffect{HandlerID{handler, rec.ID}, task})
}

// stop tells the handler once, as soon as it has the attempt.
func (c *Core) stop(a *attempt, why string, fx *Effects) {
	if a.stopping || a.ended != nil {
		return
	}
	if !a.accepted {
		a.due, a.dueWhy = true, why
		return
	}
	a.stopping = true
	fx.Stops = append(fx.Stops, StopEffect{HandlerID{a.handler, a.ID}, why})
}

// handleAccepted: from now on the attempt can be stopped, and is if that is due.
func (c *Core) handleAccepted(id executor.ID, fx *Effects) {
	if a := c.attempts[id]; a != nil {
		a.accepted = true
		a.releaseWaiters()
		c.homeHas(a)
		if a.due {
			c.stop(a, a.dueWhy, fx)
		}
	}
}

// handleRefused settles an attempt that its handler did not take.
func (c *Core) handleRefused(ev RefusedEvent, fx *Effects) {
	a := c.attempts[ev.ID]
	if a == nil {
		return
	}
	if trouble.ClassOf(ev.Err) == trouble.DeclinedTrouble { // not the task's fault: this site is in trouble
		c.troubles.Begin(a.Machine, a.handler, command.Clip(ev.Err.Error()), c.now.Boot)
	}
	if a.Home {
		c.requeueReturned(a, ev.Err, fx)
		return
	}
	ref, err := c.last.attemptRef(ev.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	c.drop(a, fx)
	c.handBack(ref, a.handler, trouble.ClassOf(ev.Err), ev.Err.Error())
}

// drop forgets a settled attempt, here and at its handler.
func (c *Core) drop(a *attempt, fx *Effects) {
	a.releaseWaiters()
	if a.ended == nil {
		c.used.add(a, -1)
	}
	delete(c.attempts, a.ID)
	// The order, or the home task's record, has the outcome: a record that stays
	// behind is found to be settled.
	fx.Writes = append(fx.Writes, record.Tidy(record.BucketAttempts, a.recordKey()))
	fx.Forgets = append(fx.Forgets, HandlerID{a.handler, a.ID})
}
