package core

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// closureBook keeps what the state was told last of why this site lends nothing.
type closureBook struct {
	told     fsm.Closure
	inflight bool
}

// closure returns why the site lends nothing now.
func (c *Core) closure() fsm.Closure {
	switch {
	case c.closing:
		return fsm.ClosedLeaving
	case c.full != nil:
		return fsm.ClosedDisk
	case c.drain.On:
		return fsm.ClosedDrain
	case c.allResting():
		return fsm.ClosedTrouble
	}
	return fsm.NotClosed
}

// reportClosure has the state know why the site lends nothing, or that it lends again. One
// command is under way at a time.
func (c *Core) reportClosure() {
	why := c.closure()
	if c.gone || c.closed.inflight || why == c.closed.told {
		return
	}
	c.closed.told, c.closed.inflight = why, true
	c.out.add(&fsm.Close{Why: why}, func(fsm.Result, StateReader, *Effects) { c.closed.inflight = false })
}

// isResting reports whether a machine rests now.
func (c *Core) isResting(machine string) bool { return c.troubles.Rests(machine, c.now.Boot) }

// allResting reports whether there are machines, and all of them rest.
func (c *Core) allResting() bool {
	return len(c.order) > 0 && !slices.ContainsFunc(c.order, func(name string) bool { return !c.isResting(name) })
}
