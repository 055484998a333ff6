package core

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// maxReports bounds the attempts in one Started or Complete command.
const maxReports = 1000

// handleStarted notes that an attempt's process runs. The federation hears of it
// with the next tick, unless the attempt has ended by then.
func (c *Core) handleStarted(ev StartedEvent) {
	a := c.attempts[ev.ID]
	if a == nil || a.ended != nil {
		return
	}
	c.troubles.End(a.Machine, a.begun)
	if a.Home {
		if num, t := c.homeTaskOf(a.ID); t != nil && t.Attempt == a.ID.Attempt {
			if t.markRunning(c.now.Wall) {
				c.emitTaskEvent(num, a.ID.Task)
			}
			c.home.jobs[num].changed(a.ID.Task)
		}
		return
	}
	c.queueStartReport(a, c.now.Wall)
}

// markRunning notes that the task's process runs since then; true if that is news.
func (t *homeTask) markRunning(at time.Time) bool {
	t.StartedMs = at.UnixMilli()
	if t.State != fsm.Assigned {
		return false
	}
	t.State = fsm.Running
	return true
}

// queueStartReport has the federation hear of a start with the next tick.
func (c *Core) queueStartReport(a *attempt, at time.Time) {
	ref, err := c.last.attemptRef(a.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	c.started = append(c.started, command.StartedAttempt{AttemptRef: ref, DelayMs: span(at.UnixMilli() - a.AssignedMs)})
}

// reportStarted tells the federation what runs; never waited for.
func (c *Core) reportStarted() {
	alive := c.started[:0]
	for _, st := range c.started {
		if a := c.attempts[c.last.attemptID(st.AttemptRef)]; a != nil && a.ended == nil {
			alive = append(alive, st)
		}
	}
	for len(alive) > 0 {
		n := min(len(alive), maxReports)
		c.out.add(&command.Started{Attempts: append([]command.StartedAttempt(nil), alive[:n]...)}, nil)
		alive = alive[n:]
	}
	c.started = c.started[:0]
}

// handleEnded takes the end of an attempt (step 7). What it took is free again.
func (c *Core) handleEnded(id executor.ID, r executor.Result, fx *Effects) {
	a := c.attempts[id]
	if a == nil || a.ended != nil {
		return
	}
	if a.stopping { // who asked for it has said why: in the same words everywhere
		r.Detail = strings.TrimPrefix(r.Detail, "stopped: ")
	}
	if r.Cause == executor.Declined && c.handsBack(a) {
		c.handBackEnded(a, r, fx)
		return
	}
	if a.Home {
		c.handleHomeEnded(a, r, fx)
		return
	}
	c.tallies.End(a.handler, r, a.stopping)
	if a.fenced {
		c.drop(a, fx)
		return
	}
	c.used.add(a, -1)
	a.ended = &r
	a.releaseWaiters()
	if !c.expelled {
		c.queueEndReport(id, a, fx)
	}
}

// handsBack reports whether an attempt that its handler took, and that could not begin
// there, goes back to its queue like one that the handler refused.
func (c *Core) handsBack(a *attempt) bool { return a.Home || !a.fenced && !a.stopping }

// handBackEnded hands back what could not begin: nothing of it ran, so it is no loss.
// Until the broker is registered the federation hears only of what is held and lost:
// the attempt is held, and handed back then (handBackHeld).
func (c *Core) handBackEnded(a *attempt, r executor.Result, fx *Effects) {
	if a.Home || c.incarnation != 0 {
		c.handleRefused(RefusedEvent{a.ID, errors.New(r.Detail)}, fx)
		return
	}
	c.used.add(a, -1)
	a.ended = &r
	a.releaseWaiters()
}

// handBackHeld hands back what could not begin while the broker was not registered.
func (c *Core) handBackHeld(fx *Effects) {
	var refs []command.AttemptRef
	for id, a := range c.attempts {
		if a.Home || a.ended == nil || a.ended.Cause != executor.Declined || !c.handsBack(a) {
			continue
		}
		if ref, err := c.last.attemptRef(id); err == nil {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	for _, ref := range refs {
		id := c.last.attemptID(ref)
		c.handleRefused(RefusedEvent{id, errors.New(c.attempts[id].ended.Detail)}, fx)
	}
}

// queueEndReport has the end of a federation attempt reported with this turn.
func (c *Core) queueEndReport(id executor.ID, a *attempt, fx *Effects) {
	r := a.ended
	if r.Cause == executor.Declined && c.handsBack(a) {
		return // it is handed back
	}
	ref, err := c.last.attemptRef(id)
	if err != nil {
		return // ids of attempts were made from references
	}
	end := command.Ended{
		AttemptRef: ref, Outcome: outcomeOf(*r, a.stopping),
		ExitCode: int32(r.ExitCode), Signal: int32(r.Signal),
		Ran: !r.Started.IsZero(), RunMs: span(r.Run.Milliseconds()), Detail: command.Clip(r.Detail),
	}
	if !r.Started.IsZero() {
		end.DelayMs = span(r.Started.UnixMilli() - a.AssignedMs)
	}
	// One with a bound whose handler lost it may still run: that is for the state
	// to wait for. Otherwise the end is certain.
	certain := !a.Bounded || r.Cause != executor.Vanished
	if c.handingBack && end.Outcome == command.Lost && certain {
		c.drop(a, fx)
		c.handBack(ref, a.handler, trouble.DeclinedClosed, "the site leaves the federation")
		return
	}
	if a.Bounded && end.Outcome == command.Lost && certain {
		end.Outcome = command.Stopped // by itself, at no one's request: a loss that needs no wait
	}
	c.ends = append(c.ends, end)
}

// reportEnds has the outcomes of this turn ordered; each attempt is kept, here
// and by its handler, until the state has its outcome.
func (c *Core) reportEnds() {
	for len(c.ends) > 0 {
		n := min(len(c.ends), maxReports)
		ends := append([]command.Ended(nil), c.ends[:n]...)
		c.ends = append(c.ends[:0], c.ends[n:]...)
		c.out.add(&command.Complete{Attempts: ends}, func(_ command.Result, _ StateReader, fx *Effects) {
			for _, e := range ends {
				id := c.last.attemptID(e.AttemptRef)
				delete(c.returned, id)
				if a := c.attempts[id]; a != nil {
					c.drop(a, fx)
				}
			}
		})
	}
}

// outcomeOf translates a handler's result. A stop that the state did not ask
// for (the broker went down together with its work) is a loss.
func outcomeOf(r executor.Result, asked bool) command.Outcome {
	switch r.Cause {
	case executor.Exited:
		if r.ExitCode == 0 && r.Signal == 0 {
			return command.Succeeded
		}
		return command.Failed
	case executor.TimedOut:
		return command.TimedOut
	case executor.Stopped:
		if asked {
			return command.Stopped
		}
		return command.Lost
	case executor.Fenced, executor.Vanished:
		return command.Lost
	case executor.Declined:
		if asked {
			return command.Stopped
		}
		return command.Lost
	case executor.NoStart:
		return command.Failed
	}
	return command.Lost
}

// span makes a difference of wall clocks fit to be reported: they may have been
// set in between, by any amount.
func span(ms int64) int64 { return min(max(ms, 0), command.MaxTimeoutMs) }
