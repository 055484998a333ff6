package core

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// reconcile compares the state with what the handlers run, and starts or stops
// the difference (step 6). It examines the assignments that changed since its last turn,
// those in c.again, and all of them if the state took something away or c.seen is 0.
// It acts on levels: only what the state says now counts, not how it came about.
func (c *Core) reconcile(s StateReader, fx *Effects) {
	c.startAhead(c.machines.Freed(), s, fx)
	again := c.again
	c.again = nil
	if change := s.SiteChange(c.site); change != c.seen {
		changed, whole := s.AssignmentsSince(c.site, c.seen)
		c.seen = change
		if whole {
			c.compare(changed, s, fx)
			c.startAhead(c.ahead.Machines(), s, fx)
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
			c.bounds.Forget(c.attempts.ID(ref))
		}
	}
}

// compare looks at every assignment and at every attempt.
func (c *Core) compare(all []fsm.Assignment, s StateReader, fx *Effects) {
	wanted := make(map[executor.ID]bool, len(all))
	for _, as := range all {
		wanted[c.attempts.ID(as.AttemptRef)] = true
		c.reconcileAssignment(as, s, fx)
	}
	c.bounds.DropUnassigned(wanted)
	c.ahead.Keep(wanted)
	for id, a := range c.attempts.All() {
		if !a.Home && !wanted[id] && a.Ended == nil {
			a.Fenced = true
			c.stopAttempt(a, "no longer assigned to this site", fx)
		}
	}
}

// reconcileAssignment does what one assignment asks for. To do it twice changes nothing.
func (c *Core) reconcileAssignment(as fsm.Assignment, s StateReader, fx *Effects) {
	id := c.attempts.ID(as.AttemptRef)
	a := c.attempts.Find(id)
	switch {
	case a == nil && c.returned[id]: // the order will take it
	case a == nil && as.Stop:
		c.giveBack(id)
		c.reports.QueueEnded(command.Ended{AttemptRef: as.AttemptRef, Outcome: command.Stopped, Detail: "never started"})
	case a == nil:
		c.acceptAssignment(id, as, s, fx)
	case as.Stop && a.Ended == nil:
		c.stopAttempt(a, as.StopWhy, fx)
	case a.Staged && a.Ended == nil:
		c.beginStaged(a, as, s, fx)
	}
}

// giveBack: the assignment is not started here any more, whatever the state says
// until it has heard so.
func (c *Core) giveBack(id executor.ID) {
	c.returned[id] = true
	c.ahead.Drop(id)
	c.bounds.Forget(id)
}

// acceptAssignment starts an assignment, or declines it: each reason to decline stands
// here or in mayBegin. The room may be gone, because a home run took it while the
// assignment was on its way, or waited for its key. Foreign work waits for a lease; the renewal has everything
// compared again.
func (c *Core) acceptAssignment(id executor.ID, as fsm.Assignment, s StateReader, fx *Effects) {
	if c.handingBack {
		c.decline(as, trouble.DeclinedClosed, "the site leaves the federation")
		return
	}
	if c.lend.Full() != nil { // its output would go to the disk that has no room
		c.decline(as, trouble.DeclinedClosed, "the site's disk is full")
		return
	}
	if unsure := c.lend.Unsure(); unsure != "" && as.Job.Site != c.site {
		c.decline(as, trouble.DeclinedClosed, command.Clip("the site starts nothing for others: "+unsure))
		return
	}
	if as.Job.Site != c.site && !c.leased() {
		return
	}
	if ready, why := c.unseal.Ready(&as); !ready {
		if why != "" {
			c.decline(as, trouble.DeclinedSealed, why)
		}
		return
	}
	class, why := c.machines.NoRoom(&as)
	waits := why != "" || c.ahead.IsBehind(id, as.Machine)
	switch {
	case waits && c.mayHold(id, &as, class):
		c.ahead.Hold(id, as.AttemptRef, as.Machine, as.Need)
		return
	case why != "":
		c.decline(as, class, why)
		return
	}
	rec := attempts.Record{
		ID: id, Machine: as.Machine, Need: executor.Resources(as.Need), AssignedMs: c.ahead.Since(id),
	}
	st, err := c.attempts.StartOf(rec, as.Job.Site, as.TimeoutMs, as.Payload)
	if !as.Delivers {
		st.Task.Outputs = executor.Outputs{}
	}
	begins := err != nil || c.mayBegin(&rec, &st, as, s)
	c.ahead.Begin(id) // for its bound or its files it waits beside the others, not before them
	if !begins {
		return
	}
	if _, end := c.attempts.Start(rec, st, err, fx); end != nil {
		c.handleEnded(id, *end, fx)
	}
}

// mayBegin reports whether a task can be started here now, and sets how long it may live.
// If not, it has declined the task, or will examine it again once its bound is declared.
func (c *Core) mayBegin(rec *attempts.Record, st *StartEffect, as fsm.Assignment, s StateReader) bool {
	if why := c.machines.Unfit(st, as.Job.Site != c.site); why != "" {
		c.decline(as, trouble.DeclinedUnfit, why)
		return false
	}
	if as.Job.Site == c.site {
		return true
	}
	if c.attempts.IsStaged(st) {
		return c.mayStage(&st.Task, as)
	}
	if st.Task.Outputs.Wanted() && c.restsFor(as) {
		return false
	}
	start, why := c.bounds.Fence(c.machines.HandlerOf(as.Machine), c.lease.until, rec, &st.Task, &as, s)
	if why != "" {
		c.decline(as, trouble.DeclinedUnbound, why)
	}
	return start
}

// decline hands an assignment back that was not begun. The class counts in /metrics, the
// reason is shown to people.
func (c *Core) decline(as fsm.Assignment, class trouble.DeclineClass, why string) {
	c.handBack(as.AttemptRef, c.machines.HandlerOf(as.Machine), class, why)
}

// handBack hands an assignment back, together with what is exposed now if that
// changed: a new offer lifts the bars of all that was declined before. Until the
// order has taken it, the assignment still stands in the state, and must not be
// started.
func (c *Core) handBack(ref command.AttemptRef, handler string, class trouble.DeclineClass, why string) {
	c.tallies.Decline(handler, class)
	c.proposeDecline(ref, class, class == trouble.DeclinedSealed, why)
}

// proposeDecline hands an assignment back; unopened: for want of what only its owner can give.
func (c *Core) proposeDecline(ref command.AttemptRef, class trouble.DeclineClass, unopened bool, why string) {
	d := &command.Decline{Attempts: []command.AttemptRef{ref}, Reason: command.Clip(why), Unopened: unopened}
	d.Offer = c.lend.Replacement(c.incarnation, class.Soon())
	id := c.attempts.ID(ref)
	c.giveBack(id)
	c.out.Add(d, func(command.Result, StateReader, *Effects) {
		delete(c.returned, id)
		c.examineAgain(ref)
	})
}

// examineAgain has one assignment looked at with the next turn.
func (c *Core) examineAgain(ref command.AttemptRef) { c.again = append(c.again, ref) }

// handleAccepted: from now on the attempt can be stopped, and is if that is due.
func (c *Core) handleAccepted(id executor.ID, fx *Effects) {
	if a := c.attempts.Find(id); a != nil {
		c.home.Has(a)
		c.attempts.Accept(a, fx)
	}
}

// handleRefused settles an attempt that its handler did not take.
func (c *Core) handleRefused(ev RefusedEvent, fx *Effects) {
	a := c.attempts.Find(ev.ID)
	if a == nil {
		return
	}
	if due, why := a.Due(); due && len(a.Inputs) > 0 && !a.Home { // it was ended while its files were copied
		c.endUnstarted(a, executor.Result{Cause: executor.Stopped, Detail: why}, fx)
		return
	}
	if trouble.ClassOf(ev.Err) == trouble.DeclinedTrouble { // not the task's fault: this site is in trouble
		c.troubles.Begin(a.Machine, a.Handler, command.Clip(ev.Err.Error()), c.now.Boot)
	}
	if a.Home {
		c.home.RequeueReturned(a, ev.Err, fx)
		return
	}
	ref, err := c.attempts.Ref(ev.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	c.attempts.Drop(a, fx)
	c.handBack(ref, a.Handler, trouble.ClassOf(ev.Err), ev.Err.Error())
}
