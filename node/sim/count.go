package sim

import (
	"context"
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

// counter is a coalition of numbers. Its memory serves one coalition after another.
type counter struct {
	c       *Case
	s       Coalition
	seed    uint64
	unit    int64
	free    []int64 // by site; of those outside none
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

// newCounter prepares to count. Error: ErrUnequal.
func newCounter(c *Case) (*counter, error) {
	for i := range c.Tasks {
		if t := &c.Tasks[i]; t.Width != 1 || t.Run != c.Tasks[0].Run {
			return nil, fmt.Errorf("count waits: %w: job %d is %d cores wide and runs %d seconds", ErrUnequal, t.Job, t.Width, t.Run)
		}
	}
	n := &counter{c: c, free: make([]int64, len(c.Cores)), own: make([]int64, len(c.Cores))}
	if len(c.Tasks) > 0 {
		n.unit = c.Tasks[0].Run
	}
	return n, nil
}

// TotalWait is what all tasks of the federation wait together, in seconds.
// Error: ErrUnequal.
func TotalWait(c *Case) (int64, error) {
	n, err := newCounter(c)
	if err != nil {
		return 0, err
	}
	return n.count(Grand(len(c.Cores))), nil
}

// count returns what a coalition waits by itself, as in the case [Case.Of] it.
func (n *counter) count(s Coalition) int64 {
	*n = counter{c: n.c, s: s, seed: n.c.SeedOf(s), unit: n.unit, free: n.free, own: n.own, runs: n.runs[:0]}
	clear(n.own)
	for site, k := range n.c.Cores {
		n.free[site] = 0
		if s.Has(site) {
			n.free[site] = k
			n.idle += k
		}
	}
	for next := n.skip(0); next < len(n.c.Tasks) || n.head < len(n.runs); {
		next = n.second(n.nextSecond(next), next)
	}
	return n.sum
}

// skip returns the first task of the coalition from the next-th on.
func (n *counter) skip(next int) int {
	for next < len(n.c.Tasks) && !n.s.Has(n.c.Tasks[next].Site) {
		next++
	}
	return next
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
		next = n.skip(next + 1)
	}
	for site := range n.own {
		for ; n.own[site] > 0 && n.free[site] > 0; n.own[site]-- {
			n.start(t, site)
		}
	}
	for i := from; i < next; i = n.skip(i + 1) {
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

// draw returns the state machine's choice of a site.
func (n *counter) draw() int {
	var r int64
	if !n.c.Params.FixedOrder {
		r = fsm.Draw(n.seed, n.drawn, 0, n.idle*1000) / 1000
	}
	for site, k := range n.free {
		if r < k {
			return site
		}
		r -= k
	}
	return 0 // not reached: r < idle
}

// Counted returns what every coalition waits by itself, by the theorem of equal
// tasks. Error: ErrUnequal.
func (c *Case) Counted() ([]int64, error) {
	n, err := newCounter(c)
	if err != nil {
		return nil, err
	}
	v := make([]int64, 1<<len(c.Cores))
	for s := Coalition(1); int(s) < len(v); s++ {
		v[s] = n.count(s)
	}
	return v, nil
}

// CheckCounted has brokers play every coalition; a difference is ErrTheorem.
func (c *Case) CheckCounted(ctx context.Context, v []int64) error {
	for s := Coalition(1); int(s) < len(v); s++ {
		sub := c.Of(s)
		out, err := PlayContext(ctx, sub)
		if err != nil {
			return err
		}
		if sum := Sum(out.Waits(sub)); sum != v[s] {
			return fmt.Errorf("%w: coalition %b waits %d seconds, counted %d", ErrTheorem, s, sum, v[s])
		}
	}
	return nil
}

// Sum returns the sum of waits, in seconds.
func Sum(waits []int64) (sum int64) {
	for _, w := range waits {
		sum += w
	}
	return sum
}
