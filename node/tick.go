package node

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// tickEvery is how often the core looks at the clock.
const tickEvery = 100 * time.Millisecond

// usageTicks is after how many ticks ended home runs are reported.
const usageTicks = 10

// tick does what is not worth an entry or a sync of its own.
func (c *core) tick(fx *effects) {
	c.ticks++
	c.keys.expire(c.now.wall, fx)
	c.impatient(fx)
	c.stopHome(fx)
	if c.incarnation == 0 {
		return
	}
	c.reportStarted()
	if c.ticks%usageTicks == 0 {
		c.reportUsage(fx)
	}
}

// demand is what waits in the federation, for handlers that fetch room on
// demand (the paper's event 2).
func demand(queues []queueSize) executor.Demand {
	var d executor.Demand
	for _, q := range queues {
		d.Tasks += q.tasks
		d.MilliCPU += q.milliCPU
	}
	return d
}

type queueSize struct {
	tasks    uint64
	milliCPU int64
}
