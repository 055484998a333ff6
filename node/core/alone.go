package core

import "github.com/cloudshare/cloudshare/fsm/command"

// A site alone (architecture D5): cut off from the quorum it goes on with its
// own users' jobs as far as nobody else can have heard of them. What may have
// been sent waits: only the federation knows who runs it.

// AloneReason is why a job waits at home while its site is alone.
const AloneReason = "the federation is out of reach: waits for room at this site"

// homeAlone reports whether a job may wait at home while the site is alone.
func (c *Core) homeAlone(js *command.JobSpec) bool { return c.lend.KeepsOwn() && c.home.HasRoom(js) }

// publishUnstarted gives the federation the home jobs that have not begun, once
// it is in reach again, and those that this site's handlers refuse or could not begin.
func (c *Core) publishUnstarted(s StateReader, fx *Effects) {
	if c.Alone() {
		return
	}
	for _, spec := range c.home.TakeUnstarted(s, fx) {
		c.pubs.Move(spec)
	}
}

// settledBelow returns the number below which this site will publish no job that
// the federation does not know yet.
func (c *Core) settledBelow() uint64 {
	return c.home.SettledBelow(c.pubs.SettledBelow(c.after.SettledBelow(c.nextJob)))
}
