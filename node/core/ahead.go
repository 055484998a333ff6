package core

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/ahead"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// maxElsewhere is for how many assignments ahead a tick looks whether they could begin elsewhere: it looks at all
// machines of the federation for each.
const maxElsewhere = 8

// longest bounds how long an assignment waits here ahead, as a multiple of how long machines idle, even while others
// before it begin.
const longest = 16

// mayHold reports whether an assignment for which its machine has no room waits for it here: the state assigns ahead,
// and that is no more than it may.
func (c *Core) mayHold(id executor.ID, as *fsm.Assignment, class trouble.DeclineClass) bool {
	if class != trouble.DeclinedBusy || c.ahead.IsHeld(id) {
		return class == trouble.DeclinedBusy
	}
	queue, need := c.ahead.Of(as.Machine)
	return c.ahead.Expects() && c.machines.TakesAhead(as, len(queue), need)
}

// startAhead begins what waited for machines that have got room, each machine's in its order. What this site's own
// users wait for has begun before.
func (c *Core) startAhead(machines []string, s StateReader, fx *Effects) {
	for _, machine := range machines {
		for queue, _ := c.ahead.Of(machine); len(queue) > 0; queue, _ = c.ahead.Of(machine) {
			first := queue[0]
			if as, ok := s.Assignment(c.site, first.Ref); ok {
				c.reconcileAssignment(as, s, fx)
			} else {
				c.ahead.Drop(first.ID)
			}
			if rest, _ := c.ahead.Of(machine); len(rest) > 0 && rest[0].ID == first.ID {
				break // it waits on
			}
		}
	}
}

// returnAhead hands back what waits here though it could begin elsewhere sooner: a longer task runs before it, another
// site has room, or this one begins nothing for others now. That costs its owner nothing, and keeps no job from here.
func (c *Core) returnAhead(s StateReader, fx *Effects) {
	looks := 0
	var late, elsewhere, closed []command.AttemptRef
	draining, _ := c.lend.Draining()
	idle := c.ahead.Ms() * int64(time.Millisecond)
	for _, machine := range c.ahead.Machines() {
		queue, _ := c.ahead.Of(machine)
		for _, h := range slices.Clone(queue) {
			waits := c.now.Boot - h.Boot
			switch {
			case draining && h.Ref.Job.Site != c.site:
				closed = c.takeBack(closed, h)
			case c.ahead.Stands(machine, h) > 4*idle || waits > longest*idle:
				late = c.takeBack(late, h)
			case waits > idle && looks < maxElsewhere:
				if looks++; s.CouldBegin(c.site, h.Ref) {
					elsewhere = c.takeBack(elsewhere, h)
				}
			}
		}
	}
	c.sendBack(late, "it waited here too long for what runs before it")
	c.sendBack(elsewhere, "another site has room for it now")
	c.sendBack(closed, "the site runs nothing for others now")
	if len(late)+len(elsewhere)+len(closed) > 0 { // what was behind a wider one may fit
		c.startAhead(c.ahead.Machines(), s, fx)
	}
}

// takeBack adds an assignment to those that are handed back: it does not begin here any more.
func (c *Core) takeBack(to []command.AttemptRef, h ahead.Held) []command.AttemptRef {
	c.giveBack(h.ID)
	return append(to, h.Ref)
}

// sendBack hands assignments back.
func (c *Core) sendBack(refs []command.AttemptRef, why string) {
	for part := range slices.Chunk(refs, turn.MaxReports) {
		c.out.Add(&command.HandBack{Attempts: part, Reason: why}, func(command.Result, StateReader, *Effects) {
			for _, ref := range part {
				delete(c.returned, c.attempts.ID(ref))
				c.examineAgain(ref)
			}
		})
	}
}
