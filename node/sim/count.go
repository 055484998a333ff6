package sim

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
)

// With equal tasks, when tasks start does not depend on whose turn it is
// (theory.md §5): at any moment, as many start as there are free cores, or
// waiting tasks. So the total wait needs no policy, no ledger and no names, only
// numbers of free cores and waiting tasks; where a task's *core* matters (one
// site's own users wait for it) the same keyed choice is made as by the state
// machine. Play gives the same total under every policy: a study checks it on
// every grand coalition, and on all others of a sample.

// counter is a federation of numbers.
type counter struct {
	c       *Case
	unit    int64
	free    []int64 // by site
	idle    int64   // sum of free
	own     []int64 // background tasks that wait, by site
	waiting int64
	drawn   uint64 // decisions of the state machine
	runs    []countedRun
	head    int // of runs: equal tasks end as they started
	sum     int64
}

type countedRun struct {
	end  int64
	site int32
}

// TotalWait is what all tasks of the federation wait together, in seconds.
// Error: ErrUnequal.
func TotalWait(c *Case) (int64, error) {
	if len(c.Tasks) == 0 {
		return 0, nil
	}
	n := &counter{c: c, unit: c.Tasks[0].Run, own: make([]int64, len(c.Cores))}
	for i := range c.Tasks {
		if t := &c.Tasks[i]; t.Width != 1 || t.Run != n.unit {
			return 0, fmt.Errorf("count waits: %w: job %d is %d cores wide and runs %d seconds", ErrUnequal, t.Job, t.Width, t.Run)
		}
	}
	n.free = append(n.free, c.Cores...)
	for _, k := range c.Cores {
		n.idle += k
	}
	n.runs = make([]countedRun, 0, len(c.Tasks))
	for next := 0; next < len(c.Tasks) || n.head < len(n.runs); {
		next = n.second(n.nextSecond(next), next)
	}
	return n.sum, nil
}

func (n *counter) nextSecond(next int) int64 {
	switch {
	case next == len(n.c.Tasks):
		return n.runs[n.head].end
	case n.head == len(n.runs):
		return n.c.Tasks[next].Release
	}
	return min(n.c.Tasks[next].Release, n.runs[n.head].end)
}

// second plays one second in the order of player.second.
func (n *counter) second(t int64, next int) int {
	for n.head < len(n.runs) && n.runs[n.head].end == t {
		n.free[n.runs[n.head].site]++
		n.idle++
		n.head++
	}
	from := next
	for next < len(n.c.Tasks) && n.c.Tasks[next].Release == t {
		if task := &n.c.Tasks[next]; task.Background {
			n.own[task.Site]++
		}
		next++
	}
	for site := range n.own {
		for ; n.own[site] > 0 && n.free[site] > 0; n.own[site]-- {
			n.start(t, site)
		}
	}
	for i := from; i < next; i++ {
		n.arrive(t, &n.c.Tasks[i])
	}
	for n.waiting > 0 && n.idle > 0 {
		n.start(t, n.draw())
		n.waiting--
		n.drawn++
		n.sum += t
	}
	return next
}

// arrive is event 1: home, if nothing waits and a core is free there.
func (n *counter) arrive(t int64, task *Task) {
	switch {
	case task.Background:
	case n.waiting == 0 && n.free[task.Site] > 0 && n.c.Home != HomeNever:
		n.start(t, task.Site)
	default:
		n.waiting++
		n.sum -= task.Release
	}
}

func (n *counter) start(t int64, site int) {
	n.free[site]--
	n.idle--
	n.runs = append(n.runs, countedRun{t + n.unit, int32(site)})
}

// draw is the state machine's choice of a site.
func (n *counter) draw() int {
	var r int64
	if !n.c.Params.FixedOrder {
		r = fsm.Draw(n.c.Seed, n.drawn, 0, n.idle*1000) / 1000
	}
	for site, k := range n.free {
		if r < k {
			return site
		}
		r -= k
	}
	return 0 // not reached: r < idle
}
