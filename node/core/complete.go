package core

import (
	"errors"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/reports"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// handleStarted notes that an attempt's process runs. The federation hears of it
// with the next tick, unless the attempt has ended by then.
func (c *Core) handleStarted(ev StartedEvent) {
	a := c.attempts.Find(ev.ID)
	if a == nil || a.Ended != nil {
		return
	}
	c.troubles.End(a.Machine, a.Begun)
	if a.Home {
		c.home.HandleStarted(a)
		return
	}
	c.reports.QueueStarted(a, c.now.Wall)
}

// handleEnded takes the end of an attempt (step 7). What it has left is kept first.
func (c *Core) handleEnded(id executor.ID, r executor.Result, fx *Effects) {
	a := c.attempts.Find(id)
	switch {
	case a == nil || a.Ended != nil || a.Collecting:
	case a.Collects(&r):
		a.Collecting = true
		fx.Collects = append(fx.Collects, CollectEffect{
			HandlerID: HandlerID{Handler: a.Handler, ID: id}, Outputs: a.Outputs, Result: r,
		})
	default:
		c.settleEnd(a, r, fx)
	}
}

// settleEnd settles an attempt that has ended. What it took is free again.
func (c *Core) settleEnd(a *attempts.Attempt, r executor.Result, fx *Effects) {
	id := a.ID
	if a.Stopping { // who asked for it has said why: in the same words everywhere
		r.Detail = strings.TrimPrefix(r.Detail, "stopped: ")
	}
	a.Charge(&r)
	if r.Cause == executor.Declined && a.HandsBack() {
		c.handBackEnded(a, r, fx)
		return
	}
	if a.Home {
		c.home.HandleEnded(a, r, fx)
		return
	}
	c.tallies.End(a.Handler, r, a.Stopping)
	if a.Fenced {
		c.attempts.Drop(a, fx)
		return
	}
	c.attempts.End(a, &r)
	if !c.expelled {
		c.queueEndReport(id, a, fx)
	}
}

// handBackEnded hands back an attempt that could not begin: nothing of it ran, so it is no
// loss. A broker that is not registered cannot decline; its registration names the attempt
// as held, and handBackHeld hands it back right after that.
func (c *Core) handBackEnded(a *attempts.Attempt, r executor.Result, fx *Effects) {
	if a.Home || c.incarnation != 0 {
		c.handleRefused(RefusedEvent{a.ID, errors.New(r.Detail)}, fx)
		return
	}
	c.attempts.End(a, &r)
}

// handBackHeld hands back what could not begin while the broker was not registered.
func (c *Core) handBackHeld(fx *Effects) {
	var refs []command.AttemptRef
	for id, a := range c.attempts.All() {
		if a.Home || a.Ended == nil || a.Ended.Cause != executor.Declined || !a.HandsBack() {
			continue
		}
		if ref, err := c.attempts.Ref(id); err == nil {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, reports.CompareRefs)
	for _, ref := range refs {
		id := c.attempts.ID(ref)
		c.handleRefused(RefusedEvent{id, errors.New(c.attempts.Find(id).Ended.Detail)}, fx)
	}
}

// queueEndReport has the end of a federation attempt reported with this turn.
func (c *Core) queueEndReport(id executor.ID, a *attempts.Attempt, fx *Effects) {
	if a.Ended.Cause == executor.Declined && a.HandsBack() {
		return // it is handed back
	}
	ref, err := c.attempts.Ref(id)
	if err != nil {
		return // ids of attempts were made from references
	}
	end, certain := reports.EndOf(ref, a)
	if c.handingBack && end.Outcome == command.Lost && certain {
		c.attempts.Drop(a, fx)
		c.handBack(ref, a.Handler, trouble.DeclinedClosed, "the site leaves the federation")
		return
	}
	if a.Bounded && end.Outcome == command.Lost && certain {
		end.Outcome = command.Stopped // by itself, at no one's request: a loss that needs no wait
	}
	c.reports.QueueEnded(end)
}
