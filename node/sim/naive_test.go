package sim

import (
	"math/big"
	"slices"

	"github.com/cloudshare/cloudshare/sched"
)

// The second implementation, for comparison: no state machine, no broker, no
// sums; it walks through all seconds and all tasks. It shares
// with the first the description of a case, and nothing else.

// naive is one run.
type naive struct {
	c         *Case
	now       int64
	start     []int64 // −1 = not yet
	site      []int
	published []bool
	home      []bool
	lastStart []int64 // by owner: number of the last decision for it
	decisions int64
	resting   []bool     // by site: fits nothing that waited when it was last tried
	offered   [][2]int64 // by site: what it told of own users' and home runs' cores
}

// naivePlay returns when and where each task starts.
func naivePlay(c *Case) *naive {
	n := &naive{
		c: c, start: make([]int64, len(c.Tasks)), site: make([]int, len(c.Tasks)),
		published: make([]bool, len(c.Tasks)), home: make([]bool, len(c.Tasks)), lastStart: make([]int64, len(c.Cores)),
		resting: make([]bool, len(c.Cores)), offered: make([][2]int64, len(c.Cores)),
	}
	for site := range n.resting {
		n.resting[site] = true // tried when the federation was founded, and nothing waited
	}
	for i := range n.start {
		n.start[i], n.site[i] = -1, Nowhere
	}
	for ; slices.Contains(n.start, -1); n.now++ {
		n.runBackground()
		for i, t := range c.Tasks {
			if t.Release == n.now && !t.Background {
				n.arrive(i)
			}
		}
		n.wake()
		n.match()
	}
	return n
}

func (n *naive) end(i int) int64 { return n.start[i] + n.c.Tasks[i].Run }

// free counts a site's cores on which nothing runs now.
func (n *naive) free(site int) int64 {
	free := n.c.Cores[site]
	for i, t := range n.c.Tasks {
		if n.site[i] == site && n.start[i] <= n.now && n.now < n.end(i) {
			free -= t.Width
		}
	}
	return free
}

func (n *naive) runBackground() {
	for site := range n.c.Cores {
		for i, t := range n.c.Tasks {
			if !t.Background || t.Site != site || t.Release > n.now || n.start[i] >= 0 {
				continue
			}
			if n.free(site) < t.Width {
				break
			}
			n.start[i], n.site[i] = n.now, site
		}
	}
}

// arrive is event 1: at home if there is room and nothing waits that could run there.
func (n *naive) arrive(i int) {
	t := n.c.Tasks[i]
	waits := n.c.Home == HomeNever
	for k, o := range n.c.Tasks {
		onItsWay := o.Site == t.Site && o.Release == n.now      // a broker knows of its own, whatever fits
		fits := o.Width <= n.c.Cores[t.Site]-n.taken(t.Site)[0] // what its own users leave it
		waits = waits || n.published[k] && n.start[k] < 0 && (onItsWay || fits)
	}
	if waits || n.free(t.Site) < t.Width {
		n.published[i] = true
		return
	}
	n.start[i], n.site[i], n.home[i] = n.now, t.Site, true
}

// taken returns what a site's own users and its home runs take now.
func (n *naive) taken(site int) (cores [2]int64) {
	for i, t := range n.c.Tasks {
		if n.site[i] != site || n.start[i] > n.now || n.now >= n.end(i) {
			continue
		}
		if t.Background {
			cores[0] += t.Width
		} else if n.home[i] {
			cores[1] += t.Width
		}
	}
	return cores
}

// wake ends the rest of sites that tell of a change, or where a task of the queue
// ended: they may have more room.
func (n *naive) wake() {
	for site := range n.c.Cores {
		if now := n.taken(site); now != n.offered[site] {
			n.offered[site], n.resting[site] = now, false
		}
		for i, t := range n.c.Tasks {
			if !t.Background && !n.home[i] && n.site[i] == site && n.end(i) == n.now {
				n.resting[site] = false
			}
		}
	}
}

// match starts what fits. A site is drawn by its free cores; one that fits nothing
// is not drawn again in this second, and rests. Sites that rest are drawn only
// while a task waits of a width of which none had waited before.
func (n *naive) match() {
	fresh := map[int64]bool{}
	for i, t := range n.c.Tasks {
		if n.waits(i) && t.Release == n.now {
			fresh[t.Width] = true
		}
	}
	for i, t := range n.c.Tasks {
		if n.waits(i) && t.Release < n.now {
			delete(fresh, t.Width)
		}
	}
	tried := map[int]bool{}
	for retry := uint64(0); ; {
		freshWaits := false
		for i, t := range n.c.Tasks {
			freshWaits = freshWaits || n.waits(i) && fresh[t.Width]
		}
		var drawn []int
		for site := range n.c.Cores {
			if !tried[site] && n.free(site) > 0 && (freshWaits || !n.resting[site]) {
				drawn = append(drawn, site)
			}
		}
		if len(drawn) == 0 {
			return
		}
		machine := n.draw(drawn, retry)
		tasks := n.fitting(machine)
		if len(tasks) == 0 {
			tried[machine], n.resting[machine] = true, true
			retry++
			continue
		}
		n.assign(n.choose(machine, tasks), machine)
		retry = 0
	}
}

func (n *naive) waits(i int) bool { return n.published[i] && n.start[i] < 0 }

func (n *naive) assign(i, machine int) {
	n.decisions++
	n.start[i], n.site[i] = n.now, machine
	n.lastStart[n.c.Tasks[i].Site] = n.decisions
}

// draw chooses one of the sites, by their free cores.
func (n *naive) draw(sites []int, retry uint64) int {
	if n.c.Params.FixedOrder {
		return sites[0]
	}
	var total int64
	for _, site := range sites {
		total += n.free(site)
	}
	r := n.random(total, retry)
	for _, site := range sites {
		if r < n.free(site) {
			return site
		}
		r -= n.free(site)
	}
	panic("drawn beyond all free cores")
}

// random is a number in [0, total) for this decision: 64 bits by SplitMix64, twice,
// and scaled to thousandths of cores.
func (n *naive) random(total int64, retry uint64) int64 {
	mix := func(x uint64) uint64 {
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	h := new(big.Int).SetUint64(mix(mix(n.c.Seed^uint64(n.decisions)) ^ retry))
	h.Mul(h, big.NewInt(total*1000))
	return h.Rsh(h, 64).Int64() / 1000
}

// fitting lists the waiting tasks that fit a site now.
func (n *naive) fitting(site int) (tasks []int) {
	for i, t := range n.c.Tasks {
		if n.waits(i) && t.Width <= n.free(site) {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// choose picks the owner whose turn it is, and its longest waiting task. Ties:
// the machine's owner, then the oldest task, then the lowest site.
func (n *naive) choose(machine int, tasks []int) int {
	best := tasks[0]
	for _, i := range tasks[1:] {
		if n.before(i, best, machine) {
			best = i
		}
	}
	return best
}

func (n *naive) before(i, k, machine int) bool {
	a, b := n.c.Tasks[i], n.c.Tasks[k]
	if a.Site == b.Site {
		return i < k
	}
	if c := n.rank(a.Site).Cmp(n.rank(b.Site)); c != 0 {
		return c > 0
	}
	if a.Site == machine || b.Site == machine {
		return a.Site == machine
	}
	if a.Release != b.Release {
		return a.Release < b.Release
	}
	return a.Site < b.Site
}

// rank is a site's standing under the policy, from the definitions of the paper.
func (n *naive) rank(site int) *big.Rat {
	switch n.c.Params.Policy {
	case sched.RoundRobin:
		return big.NewRat(-n.lastStart[site], 1)
	case sched.FairShare:
		share := n.c.Cores[site]
		for i, t := range n.c.Tasks {
			if !n.c.WholeShare && t.Background && n.site[i] == site && n.start[i] <= n.now && n.now < n.end(i) {
				share -= t.Width
			}
		}
		if share == 0 {
			return big.NewRat(-1<<62, 1) // after everybody else
		}
		return big.NewRat(-n.sum(func(i int) bool { return n.c.Tasks[i].Site == site }), share)
	}
	gave := n.sum(func(i int) bool { return n.site[i] == site })
	used := n.sum(func(i int) bool { return n.c.Tasks[i].Site == site })
	return big.NewRat(gave-used, 1)
}

// sum adds the policy's utility of the federation's tasks that started.
func (n *naive) sum(which func(i int) bool) (sum int64) {
	for i, t := range n.c.Tasks {
		if t.Background || n.start[i] < 0 || !which(i) {
			continue
		}
		ended := n.end(i) <= n.now
		if !ended && (n.home[i] || n.c.Params.Running == sched.Completed) {
			continue
		}
		if n.home[i] && n.c.Home == HomeUnreported {
			continue
		}
		for x := n.start[i]; x < min(n.end(i), n.now); x++ {
			switch n.c.Params.Policy {
			case sched.OrigDirect:
				sum += t.Width * (n.now - x)
			case sched.RelDirect:
				sum += t.Width * (n.now - x + t.Release)
			default:
				sum += t.Width
			}
		}
	}
	return sum
}

// naiveShapley averages marginal contributions over all orders of joining.
func naiveShapley(n int, v func(members []int) int64) []*big.Rat {
	phi := make([]*big.Rat, n)
	for o := range phi {
		phi[o] = new(big.Rat)
	}
	orders := int64(0)
	var join func(members []int)
	join = func(members []int) {
		if len(members) == n {
			orders++
			for k, o := range members {
				gain := v(members[:k+1]) - v(members[:k])
				phi[o].Add(phi[o], big.NewRat(gain, 1))
			}
			return
		}
		for o := range n {
			if !slices.Contains(members, o) {
				join(append(slices.Clone(members), o))
			}
		}
	}
	join(nil)
	for o := range phi {
		phi[o].Quo(phi[o], big.NewRat(orders, 1))
	}
	return phi
}
