package core

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TickEvery is how often the core looks at the clock.
const TickEvery = 100 * time.Millisecond

// usageTicks is after how many ticks ended home runs are reported.
const usageTicks = 10

// tick does what is not worth an entry or a sync of its own.
func (c *Core) tick(s StateReader, fx *Effects) {
	c.ticks++
	c.keys.Advance(c.now.Up)
	c.keys.Expire(&fx.Writes)
	c.pubs.AckTimedOut(fx)
	c.home.StopCancelled(fx)
	c.lookAtUsers(looksPerTick, s)
	c.after.Look(afterPerTick, c.standingIn(s), fx)
	if c.unstopped {
		c.unstopped, c.seen = false, 0
	}
	if c.incarnation == 0 {
		return
	}
	c.reports.SendStarted()
	c.returnAhead(s, fx)
	c.ahead.Tell(s.Version())
	c.setWindow(s)
	if c.ticks%usageTicks == 0 {
		c.renice()
		c.usage.Report(fx)
		keys, files := c.unseal.Expire(), c.inputs.Expire()
		if keys || files {
			c.lend.Owe()
		}
		c.lend.RepeatOwed()
		c.writeUse(fx)
		c.whose.Sweep(func(num uint64) bool { return c.forgotten(num, s) }, &fx.Writes)
		if d := demand(s); d != c.demand {
			c.demand = d
			fx.Demand = &d
		}
	}
}

// forgotten reports whether neither this broker nor the state knows a job of this site any more.
func (c *Core) forgotten(num uint64, s StateReader) bool {
	if c.isOwn(num) {
		return false
	}
	_, known := s.Job(command.JobID{Site: c.site, Num: num})
	return !known
}

// demand returns what waits in the federation, for handlers that fetch room when it
// is wanted (the paper's event 2).
func demand(s StateReader) executor.Demand {
	var d executor.Demand
	for _, q := range s.Queue() {
		d.Tasks += q.Waiting
		d.MilliCPU += q.MilliCPU
	}
	return d
}
