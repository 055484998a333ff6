package core

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// closureBook keeps what the state was told last of why this site lends nothing.
type closureBook struct {
	told     command.Closure
	inflight bool
}

// closure returns why the site lends nothing now.
func (c *Core) closure() command.Closure {
	switch {
	case c.closing:
		return command.ClosedLeaving
	case c.full != nil:
		return command.ClosedDisk
	case c.drain.On:
		return command.ClosedDrain
	case c.allResting():
		return command.ClosedTrouble
	}
	return command.NotClosed
}

// reportClosure has the state know why the site lends nothing, or that it lends again. One
// command is under way at a time.
func (c *Core) reportClosure() {
	why := c.closure()
	if c.gone || c.closed.inflight || why == c.closed.told {
		return
	}
	c.closed.told, c.closed.inflight = why, true
	c.out.add(&command.Close{Why: why}, func(command.Result, StateReader, *Effects) { c.closed.inflight = false })
}

// isResting reports whether a machine rests now.
func (c *Core) isResting(machine string) bool { return c.troubles.Rests(machine, c.now.Boot) }

// allResting reports whether there are machines, and all of them rest.
func (c *Core) allResting() bool {
	return len(c.order) > 0 && !slices.ContainsFunc(c.order, func(name string) bool { return !c.isResting(name) })
}
