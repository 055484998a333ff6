package core

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
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
	if c.unstopped {
		c.unstopped, c.seen = false, 0
	}
	if c.incarnation == 0 {
		return
	}
	c.reports.SendStarted()
	if c.ticks%usageTicks == 0 {
		c.usage.Report(fx)
		c.lend.RepeatOwed()
		if d := demand(s); d != c.demand {
			c.demand = d
			fx.Demand = &d
		}
	}
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
