package core

import "github.com/cloudshare/cloudshare/fsm/command"

// DrainEvent says that the operator drains or resumes the site; done is called once it
// is durable.
type DrainEvent struct {
	Drain
	Done func()
}

func (DrainEvent) isEvent() {}

// homePaused reports whether nothing is started at home now: the site wants it so, or too
// many runs wait for their report.
func (c *Core) homePaused() bool { return c.lend.PausesHome() || c.usage.Full() }

// Draining tells what the site takes on: nothing for others (on), nothing for its own
// users either (own).
func (c *Core) Draining() (on, own bool) { return c.lend.Draining() }

// Close has the site offer nothing any more.
func (c *Core) Close() { c.lend.Close() }

// HandBackAll has the site offer nothing any more and hand back what ends.
func (c *Core) HandBackAll() {
	c.lend.Close()
	c.handingBack, c.seen = true, 0
}

// Withdrawn reports whether the order has taken the last offer, of nothing.
func (c *Core) Withdrawn() bool { return c.lend.Withdrawn() }

// Idle reports whether nothing runs here.
func (c *Core) Idle() bool { return c.attempts.Len() == 0 }

// ProposeDeparture proposes the last command of a site that leaves, and sends its result's code to done.
func (c *Core) ProposeDeparture(body command.Body, done chan<- command.Code) {
	c.gone = true // when the state says so, it is no reason to come back
	c.out.Add(body, func(r command.Result, _ StateReader, _ *Effects) { done <- r.Code })
}
