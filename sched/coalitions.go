package sched

import (
	"fmt"
	"math/bits"
	"slices"
)

// Bounds of the different times at which cores become free that all queues keep
// together, and each of them at least and at most.
const (
	allSlots            = 1 << 15
	minSlots, mostSlots = 256, 4096
)

// Coalitions are the virtual queues that a policy by projected waits compares.
// Sites are numbered from 0 in the order of Join.
//
// It is not safe for concurrent use. Reads change nothing.
type Coalitions struct {
	policy string // effective
	n      int
	least  int64 // of all queues
	// ALONE and CE: all sites, and each alone; CE: all without each.
	grand     *shared
	own, rest []*shared
	// SHAPLEY: every coalition, by the set of its sites; [0] is nobody.
	all []*shared

	fair []Int128 // derived, SHAPLEY: Fair of each site, while known
}

// shared is a queue that a copy of Coalitions may share.
type shared struct {
	Queue
	epoch uint64 // may be written in place in this epoch only
}

func (q *shared) own(epoch uint64) *shared {
	if q.epoch == epoch {
		return q
	}
	return &shared{*q.Clone(), epoch}
}

// NewCoalitions returns the coalitions of no sites, from a time on; least is that of
// each queue (NewQueue).
//
// REQUIRES: IsProjected(policy).
func NewCoalitions(policy string, least, now int64, epoch uint64) *Coalitions {
	c := &Coalitions{policy: policy, least: least}
	empty := &shared{*NewQueue(least, now), epoch}
	if policy == Shapley {
		c.all = []*shared{empty}
	} else {
		c.grand = empty
	}
	return c
}

// Policy returns the one that counts: see Effective.
func (c *Coalitions) Policy() string { return c.policy }

// Sites returns how many have joined.
func (c *Coalitions) Sites() int { return c.n }

// Copy returns a copy that later writes in a new epoch do not change.
func (c *Coalitions) Copy() *Coalitions {
	d := *c
	d.own, d.rest, d.all, d.fair = slices.Clone(c.own), slices.Clone(c.rest), slices.Clone(c.all), nil
	return &d
}

// Join adds a site that has nothing yet: no coalition's waits change by it. Above
// a limit the next policy takes over, with the queues that it shares.
func (c *Coalitions) Join(now int64, epoch uint64) {
	if Effective(c.policy, c.n+1) != c.policy {
		c.giveWay()
	}
	c.fair = nil
	c.n++
	if c.policy == Shapley {
		for _, q := range c.all {
			c.all = append(c.all, &shared{*q.Clone(), epoch})
		}
		return
	}
	c.own = append(c.own, &shared{*NewQueue(c.least, now), epoch})
	if c.policy == CE {
		c.rest = append(c.rest, &shared{*c.grand.Clone(), epoch})
	}
}

// giveWay goes on with the next policy.
func (c *Coalitions) giveWay() {
	if c.policy == CE {
		c.policy, c.rest = Alone, nil
		return
	}
	c.policy = CE
	everybody := len(c.all) - 1
	c.grand = c.all[everybody]
	for o := range c.n {
		c.own = append(c.own, c.all[1<<o])
		c.rest = append(c.rest, c.all[everybody&^(1<<o)])
	}
	c.all = nil
}

// queues returns how many there are.
func (c *Coalitions) queues() int { return 1 + len(c.own) + len(c.rest) + len(c.all) }

// slots returns how many different times each queue may keep.
func (c *Coalitions) slots() int { return max(minSlots, min(allSlots/c.queues(), mostSlots)) }

// Step enters what one entry changed, by site. The queues of coalitions without a
// changed site stay as they are.
//
// REQUIRES: len(changes) = Sites(); changed holds the sites whose change is not
// zero, each once; now ≥ the last Step's.
func (c *Coalitions) Step(now int64, changes []Change, changed []int32, epoch uint64) {
	if len(changed) == 0 {
		return
	}
	c.fair = nil
	limit := c.slots()
	if c.policy == Shapley {
		c.stepAll(now, changes, changed, limit, epoch)
		return
	}
	var sum Change
	for _, o := range changed {
		sum.Plus(&changes[o])
		c.own[o] = c.own[o].own(epoch)
		c.own[o].Step(now, &changes[o], limit)
	}
	c.grand = c.grand.own(epoch)
	c.grand.Step(now, &sum, limit)
	for k := range c.rest {
		if len(changed) == 1 && changed[0] == int32(k) {
			continue
		}
		d := sum
		d.Minus(&changes[k])
		c.rest[k] = c.rest[k].own(epoch)
		c.rest[k].Step(now, &d, limit)
	}
}

// stepAll is Step for every coalition.
func (c *Coalitions) stepAll(now int64, changes []Change, changed []int32, limit int, epoch uint64) {
	touched := 0
	for _, o := range changed {
		touched |= 1 << o
	}
	sums := make([]Change, len(c.all))
	for set := 1; set < len(c.all); set++ {
		o := bits.TrailingZeros(uint(set))
		sums[set] = sums[set&(set-1)]
		if touched&(1<<o) != 0 {
			sums[set].Plus(&changes[o])
		}
		if set&touched != 0 {
			c.all[set] = c.all[set].own(epoch)
			c.all[set].Step(now, &sums[set], limit)
		}
	}
}

// Count keeps what Fair(site) and Total compute, for later calls.
func (c *Coalitions) Count(site int) {
	if c.policy != Shapley {
		c.grand.Count()
		c.own[site].Count()
		if c.policy == CE {
			c.rest[site].Count()
		}
		return
	}
	if c.fair == nil {
		for _, q := range c.all {
			q.Count()
		}
		c.fair = c.Shares()
	}
}

// Total is what all sites together would wait: their one virtual queue's Total.
func (c *Coalitions) Total() Int128 {
	if c.policy == Shapley {
		return c.all[len(c.all)-1].Total()
	}
	return c.grand.Total()
}

// Own returns what a site would wait alone.
func (c *Coalitions) Own(site int) Int128 {
	if c.policy == Shapley {
		return c.all[1<<site].Total()
	}
	return c.own[site].Total()
}

// Scale returns what Fair is multiplied by, so that it is whole: 1 for ALONE, 2 for
// CE, lcm(1…n) for SHAPLEY.
func (c *Coalitions) Scale() int64 {
	switch c.policy {
	case Alone:
		return 1
	case CE:
		return 2
	}
	return lcmTo(c.n)
}

// Fair is Scale times a site's fair share of all waiting, with v(S) the Total of
// S's queue: ALONE v({o}); CE v({o}) + v(N) − v(N∖o), halved; SHAPLEY
// Σ over S without o of |S|!(n−1−|S|)!/n!·(v(S∪o) − v(S)).
// Its size is at most Scale·MaxWait.
func (c *Coalitions) Fair(site int) Int128 {
	if c.policy == Shapley {
		return c.Shares()[site]
	}
	return c.share(site)
}

// share returns a site's under ALONE or CE.
func (c *Coalitions) share(site int) Int128 {
	v := c.own[site].Total()
	if c.policy == CE {
		v = v.Add(c.grand.Total()).Sub(c.rest[site].Total())
	}
	return v
}

// Shares returns all sites' Fair, not to be changed. With u(s) = L·s!(n−1−s)!/n! = L/(n·C(n−1, s)), the
// Shapley value is Σ over S with o of (u(s−1) + u(s))·v(S), less Σ over all S
// of u(s)·v(S), where u(n) = 0: one pass over the coalitions for all sites.
func (c *Coalitions) Shares() []Int128 {
	if c.fair != nil {
		return c.fair
	}
	fair := make([]Int128, c.n)
	if c.policy != Shapley {
		for o := range fair {
			fair[o] = c.share(o)
		}
		return fair
	}
	u := weights(c.n)
	var without Int128
	for set := 1; set < len(c.all); set++ {
		v, s := c.all[set].Total(), bits.OnesCount(uint(set))
		without = without.Add(v.MulInt64(u[s]))
		v = v.MulInt64(u[s-1] + u[s])
		for rest := uint(set); rest != 0; rest &= rest - 1 {
			o := bits.TrailingZeros(rest)
			fair[o] = fair[o].Add(v)
		}
	}
	for o := range fair {
		fair[o] = fair[o].Sub(without)
	}
	return fair
}

// weights returns u(0) … u(n): lcm(1…n)/(n·C(n−1, s)), whole numbers; u(n) = 0.
func weights(n int) []int64 {
	u := make([]int64, n+1)
	choose := int64(1)
	for s := range n {
		u[s] = lcmTo(n) / (int64(n) * choose)
		choose = choose * int64(n-1-s) / int64(s+1)
	}
	return u
}

func lcmTo(n int) int64 {
	l := int64(1)
	for i := int64(2); i <= int64(n); i++ {
		a, b := l, i
		for b != 0 {
			a, b = b, a%b
		}
		l = l / a * i
	}
	return l
}

// All yields the queues in an order that depends on policy and sites only, for
// snapshots.
func (c *Coalitions) All(yield func(q *Queue) bool) {
	for _, q := range c.list() {
		if !yield(&q.Queue) {
			return
		}
	}
}

func (c *Coalitions) list() []*shared {
	if c.policy == Shapley {
		return c.all
	}
	return slices.Concat([]*shared{c.grand}, c.own, c.rest)
}

// RestoreCoalitions makes coalitions of what All yielded, asking for one queue
// after another. Errors: ErrBadQueue, and next's.
func RestoreCoalitions(policy string, sites int, least, now int64, epoch uint64,
	next func() (*Queue, error),
) (*Coalitions, error) {
	c := &Coalitions{policy: policy, n: sites, least: least}
	if Effective(policy, sites) != policy {
		return nil, fmt.Errorf("%w: %s with %d sites", ErrBadQueue, policy, sites)
	}
	read := func(n int) (list []*shared, err error) {
		for range n {
			q, err := next()
			if err != nil {
				return nil, err
			}
			if q.clock > now || q.least != least {
				return nil, fmt.Errorf("%w: it is ahead of time %d, or not of these coalitions", ErrBadQueue, now)
			}
			list = append(list, &shared{*q, epoch})
		}
		return list, nil
	}
	if policy == Shapley {
		var err error
		c.all, err = read(1 << sites)
		return c, err
	}
	grand, err := read(1)
	if err != nil {
		return nil, err
	}
	c.grand = grand[0]
	if c.own, err = read(sites); err == nil && policy == CE {
		c.rest, err = read(sites)
	}
	return c, err
}
