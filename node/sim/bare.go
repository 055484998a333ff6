package sim

import (
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
)

// turn says whose turn it is in a bare run: something that brokers cannot play,
// because it is no policy of the product.
type turn interface {
	// arrived and began hear of every task of the federation; a task that starts at
	// home hears of both in one second. It starts at a site's machine.
	arrived(task int, now int64)
	began(task, site int, now int64)
	// rank is the place of a site whose longest waiting task that fits is head.
	rank(site, head int, now int64) sched.Rank
}

// bare plays a case without brokers, log and state machine: by the same rules,
// with the same draws, but any turn. With the ranks of one of the product's
// policies every start is that of Play (TestBareIsPlay).
type bare struct {
	c    *Case
	turn turn
	now  int64
	next int // of c.Tasks

	widths []int64 // of the federation's tasks, ascending
	class  []int   // by task: its place in widths
	queues [][]fifo
	count  []int // waiting tasks by class
	old    []int // of these, those that waited before this second
	own    []fifo

	free    []int64
	taken   [][2]int64 // cores by its own users, and by home runs
	offered [][2]int64 // taken, when the site last told of it
	resting []bool     // fits nothing that waited when it was last tried
	onWay   []int      // tasks published by a site in this second
	atHome  []bool
	ends    endQueue
	drawn   uint64
	out     Outcome
}

// fifo is a queue of tasks.
type fifo struct {
	tasks []int
	head  int
}

func (f *fifo) push(task int) { f.tasks = append(f.tasks, task) }
func (f *fifo) empty() bool   { return f.head == len(f.tasks) }
func (f *fifo) front() int    { return f.tasks[f.head] }

// playBare runs a case to its end.
//
// REQUIRES: c.Validate() is nil.
func playBare(c *Case, t turn) *Outcome { return newBare(c, t).run() }

func (b *bare) run() *Outcome {
	c := b.c
	for b.next < len(c.Tasks) || !b.ends.empty() {
		b.now = math.MaxInt64
		if b.next < len(c.Tasks) {
			b.now = c.Tasks[b.next].Release
		}
		if !b.ends.empty() {
			b.now = min(b.now, b.ends.at())
		}
		b.second()
	}
	return &b.out
}

func newBare(c *Case, t turn) *bare {
	sites, tasks := len(c.Cores), len(c.Tasks)
	b := &bare{
		c: c, turn: t, class: make([]int, tasks), queues: make([][]fifo, sites), own: make([]fifo, sites),
		free: slices.Clone(c.Cores), taken: make([][2]int64, sites), offered: make([][2]int64, sites),
		resting: make([]bool, sites),
		onWay:   make([]int, sites), atHome: make([]bool, tasks),
	}
	for i := range c.Tasks {
		if at, found := slices.BinarySearch(b.widths, c.Tasks[i].Width); !found {
			b.widths = slices.Insert(b.widths, at, c.Tasks[i].Width)
		}
	}
	for i := range c.Tasks {
		b.class[i], _ = slices.BinarySearch(b.widths, c.Tasks[i].Width)
	}
	b.count, b.old = make([]int, len(b.widths)), make([]int, len(b.widths))
	for site := range sites {
		b.queues[site], b.resting[site] = make([]fifo, len(b.widths)), true
	}
	b.out.Start, b.out.Site = make([]int64, tasks), make([]int, tasks)
	for i := range tasks {
		b.out.Start[i], b.out.Site[i] = -1, Nowhere
	}
	return b
}

// second plays everything that happens now, in the order of player.second.
func (b *bare) second() {
	copy(b.old, b.count)
	for !b.ends.empty() && b.ends.at() == b.now {
		b.endTask(b.ends.pop())
	}
	from := b.next
	for b.next < len(b.c.Tasks) && b.c.Tasks[b.next].Release == b.now {
		if t := &b.c.Tasks[b.next]; t.Background {
			b.own[t.Site].push(b.next)
		}
		b.next++
	}
	b.runOwn()
	clear(b.onWay)
	for i := from; i < b.next; i++ {
		if !b.c.Tasks[i].Background {
			b.arrive(i)
		}
	}
	for site, taken := range b.taken {
		if taken != b.offered[site] {
			b.offered[site], b.resting[site] = taken, false
		}
	}
	b.match()
}

func (b *bare) endTask(e end) {
	t := &b.c.Tasks[e.task]
	b.free[e.site] += t.Width
	switch {
	case t.Background:
		b.taken[e.site][0] -= t.Width
	case b.atHome[e.task]:
		b.taken[e.site][1] -= t.Width
	default:
		b.resting[e.site] = false
	}
}

// runOwn starts background tasks, each site's in order.
func (b *bare) runOwn() {
	for site := range b.own {
		for q := &b.own[site]; !q.empty() && b.c.Tasks[q.front()].Width <= b.free[site]; q.head++ {
			b.taken[site][0] += b.c.Tasks[q.front()].Width
			b.start(q.front(), site)
		}
	}
}

// arrive is event 1: home if there is room and nothing waits that could run there.
func (b *bare) arrive(i int) {
	t := &b.c.Tasks[i]
	b.turn.arrived(i, b.now)
	if b.c.Home != HomeNever && b.onWay[t.Site] == 0 && b.free[t.Site] >= t.Width && !b.waitingFits(t.Site) {
		b.atHome[i] = true
		b.taken[t.Site][1] += t.Width
		b.start(i, t.Site)
		b.turn.began(i, t.Site, b.now)
		return
	}
	b.onWay[t.Site]++
	b.count[b.class[i]]++
	b.queues[t.Site][b.class[i]].push(i)
}

// waitingFits reports whether a task waits that could run on what a site's own
// users leave it.
func (b *bare) waitingFits(site int) bool {
	for class, width := range b.widths {
		if width > b.c.Cores[site]-b.taken[site][0] {
			return false
		}
		if b.count[class] > 0 {
			return true
		}
	}
	return false
}

func (b *bare) start(i, site int) {
	b.free[site] -= b.c.Tasks[i].Width
	b.out.Start[i], b.out.Site[i] = b.now, site
	b.out.Order = append(b.out.Order, int32(i))
	b.ends.push(end{at: b.now + b.c.Tasks[i].Run, n: len(b.out.Order), task: i, site: site, id: executor.ID{}})
}

// match starts what fits. A site is drawn by its free cores; one that fits nothing
// is not drawn again in this second, and rests: it is drawn only while a task waits
// of a width of which none waited before.
func (b *bare) match() {
	fresh := make([]bool, len(b.widths))
	for class := range fresh {
		fresh[class] = b.count[class] > 0 && b.old[class] == 0
	}
	var tried Coalition
	for retry := uint64(0); ; {
		site, ok := b.draw(tried, fresh, retry)
		if !ok {
			return
		}
		if i := b.choose(site); i >= 0 {
			b.queues[b.c.Tasks[i].Site][b.class[i]].head++
			b.count[b.class[i]]--
			b.drawn++
			b.start(i, site)
			b.turn.began(i, site, b.now)
			retry = 0
			continue
		}
		tried, b.resting[site] = tried|1<<site, true
		retry++
	}
}

// draw returns the state machine's choice of a site; false if there is none to try.
func (b *bare) draw(tried Coalition, fresh []bool, retry uint64) (int, bool) {
	freshWaits := false
	for class := range fresh {
		freshWaits = freshWaits || fresh[class] && b.count[class] > 0
	}
	left := func(site int) int64 {
		if tried.Has(site) || b.resting[site] && !freshWaits {
			return 0
		}
		return b.free[site]
	}
	var sum, r int64
	for site := range b.free {
		sum += left(site)
	}
	if sum == 0 {
		return 0, false
	}
	if !b.c.Params.FixedOrder {
		r = fsm.Draw(b.c.Seed, b.drawn, retry, sum*1000) / 1000
	}
	for site := range b.free {
		n := left(site)
		if r < n {
			return site, true
		}
		r -= n
	}
	return 0, false // not reached: r < sum
}

// choose picks the owner whose turn it is, and its longest waiting task that fits,
// −1 if nothing does. Ties: the machine's owner, then the oldest task, then the lowest site.
func (b *bare) choose(machine int) int {
	best := -1
	var place sched.Rank
	for site := range b.queues {
		i := b.longest(site, b.free[machine])
		if i < 0 {
			continue
		}
		rank := b.turn.rank(site, i, b.now)
		if best < 0 || b.before(rank.Compare(place), i, best, machine) {
			best, place = i, rank
		}
	}
	return best
}

// before reports whether task i of a later site goes before best.
func (b *bare) before(compared, i, best, machine int) bool {
	x, y := &b.c.Tasks[i], &b.c.Tasks[best]
	switch {
	case compared != 0:
		return compared > 0
	case x.Site == machine || y.Site == machine:
		return x.Site == machine
	}
	return x.Release < y.Release
}

// longest returns a site's longest waiting task of at most a width, −1 if there is none.
func (b *bare) longest(site int, width int64) int {
	best := -1
	for class, w := range b.widths {
		if w > width {
			break
		}
		if q := &b.queues[site][class]; !q.empty() && (best < 0 || q.front() < best) {
			best = q.front()
		}
	}
	return best
}
