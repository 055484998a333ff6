package sched_test

import (
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/sched/schedtest"
)

// plainFederation keeps the changes of all sites and, for any coalition, plays
// them from the start.
type plainFederation struct {
	steps []plainStep
	sites int
	least int64
}

type plainStep struct {
	now     int64
	changes []sched.Change
	changed []int32
}

// total plays a coalition, a set of sites.
func (f *plainFederation) total(set uint) *big.Int {
	p := schedtest.NewQueue(f.least, 0)
	for _, s := range f.steps {
		var sum sched.Change
		in := false
		for _, o := range s.changed {
			if set&(1<<o) != 0 {
				sum.Plus(&s.changes[o])
				in = true
			}
		}
		if in {
			p.Step(s.now, &sum, 4096)
		}
	}
	if v := p.Total(); v.Cmp(schedtest.Big(sched.MaxWait)) < 0 {
		return v
	}
	return schedtest.Big(sched.MaxWait)
}

// shapley is a site's mean contribution over all orders of joining.
func (f *plainFederation) shapley(site int) *big.Rat {
	value := make([]*big.Int, 1<<f.sites)
	for set := range value {
		value[set] = f.total(uint(set))
	}
	sum, orders := new(big.Int), int64(0)
	var join func(set uint)
	join = func(set uint) {
		if bits.OnesCount(set) == f.sites {
			orders++
			return
		}
		for o := range f.sites {
			if set&(1<<o) != 0 {
				continue
			}
			before := orders
			join(set | 1<<o)
			if o == site {
				d := new(big.Int).Sub(value[set|1<<o], value[set])
				sum.Add(sum, d.Mul(d, big.NewInt(orders-before)))
			}
		}
	}
	join(0)
	return new(big.Rat).SetFrac(sum, big.NewInt(orders))
}

// fair is a site's fair share by the policy's definition.
func (f *plainFederation) fair(policy string, site int) *big.Rat {
	all := uint(1)<<f.sites - 1
	switch policy {
	case sched.Alone:
		return new(big.Rat).SetInt(f.total(1 << site))
	case sched.CE:
		v := f.total(1 << site)
		v.Add(v, f.total(all)).Sub(v, f.total(all&^(1<<site)))
		return new(big.Rat).SetFrac(v, big.NewInt(2))
	}
	return f.shapley(site)
}

// play draws a federation's changes and enters them into coalitions. What a site
// does before it has joined does not happen.
func play(t *rapid.T, policies []string, sites int) (*plainFederation, []*sched.Coalitions) {
	f := &plainFederation{least: rapid.Int64Range(0, 1).Draw(t, "least")}
	var all []*sched.Coalitions
	for _, p := range policies {
		all = append(all, sched.NewCoalitions(p, f.least, 0, 0))
	}
	now, cores, epoch := int64(0), make([]int64, sites), uint64(0)
	for f.sites < sites || rapid.IntRange(0, 7).Draw(t, "go on") > 0 {
		if f.sites < sites && rapid.IntRange(0, 1).Draw(t, "join") == 0 {
			f.sites++
			for _, c := range all {
				c.Join(now, epoch)
			}
		}
		now += rapid.Int64Range(0, 80).Draw(t, "later")
		s := plainStep{now: now, changes: make([]sched.Change, f.sites)}
		for o := range f.sites {
			if rapid.IntRange(0, 2).Draw(t, "changed") == 0 {
				s.changes[o] = drawChange(t, now, cores[o])
				cores[o] += s.changes[o].Cores
				s.changed = append(s.changed, int32(o))
			}
		}
		f.steps = append(f.steps, s)
		epoch += uint64(rapid.IntRange(0, 1).Draw(t, "snapshot"))
		for i, c := range all {
			frozen := c.Copy()
			before := statesOf(frozen)
			all[i].Step(now, s.changes, s.changed, epoch+1)
			if !slices.EqualFunc(statesOf(frozen), before, equalState) {
				t.Fatal("a step changed a copy of an earlier epoch")
			}
			all[i] = c
		}
		epoch++
	}
	return f, all
}

func statesOf(c *sched.Coalitions) (out []sched.QueueState) {
	for q := range c.All {
		out = append(out, q.Clone().State())
	}
	return out
}

// TestFairIsNaive compares fair shares under all three policies with their
// definitions over coalitions that are played from the start, one by one.
func TestFairIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, all := play(t, sched.Projected(), rapid.IntRange(1, 5).Draw(t, "sites"))
		for _, c := range all {
			for o := range f.sites {
				if rapid.Bool().Draw(t, "count") {
					c.Count(o)
				}
			}
			if rapid.Bool().Draw(t, "restore") {
				c = restored(t, c, f.least)
			}
			if got, want := schedtest.Big(c.Total()), f.total(1<<f.sites-1); got.Cmp(want) != 0 {
				t.Fatalf("%s: all wait %v, naively %v", c.Policy(), got, want)
			}
			for o := range f.sites {
				got := new(big.Rat).SetFrac(schedtest.Big(c.Fair(o)), big.NewInt(c.Scale()))
				if want := f.fair(c.Policy(), o); got.Cmp(want) != 0 {
					t.Fatalf("%s: fair share of %d of %d is %v, naively %v", c.Policy(), o, f.sites, got, want)
				}
				if got, want := schedtest.Big(c.Own(o)), f.total(1<<o); got.Cmp(want) != 0 {
					t.Fatalf("%s: %d alone waits %v, naively %v", c.Policy(), o, got, want)
				}
			}
		}
	})
}

func restored(t *rapid.T, c *sched.Coalitions, least int64) *sched.Coalitions {
	states := statesOf(c)
	r, err := sched.RestoreCoalitions(c.Policy(), c.Sites(), least, sched.MaxNow, 7, func() (*sched.Queue, error) {
		s := states[0]
		states = states[1:]
		return sched.RestoreQueue(s)
	})
	if err != nil || len(states) > 0 {
		t.Fatalf("restore: %v, %d queues left", err, len(states))
	}
	return r
}

// TestCEIsShapleyOfThree: with three sites the two differ by the same amount
// for all, so their orders are one.
func TestCEIsShapleyOfThree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, all := play(t, []string{sched.CE, sched.Shapley}, 3)
		var diff *big.Rat
		for o := range 3 {
			d := new(big.Rat).SetFrac(schedtest.Big(all[0].Fair(o)), big.NewInt(all[0].Scale()))
			d.Sub(d, new(big.Rat).SetFrac(schedtest.Big(all[1].Fair(o)), big.NewInt(all[1].Scale())))
			if diff != nil && diff.Cmp(d) != 0 {
				t.Fatalf("site %d differs by %v, others by %v", o, d, diff)
			}
			diff = d
		}
	})
}

// TestEqualSitesAreSymmetric: sites that do the same have the same share; under
// SHAPLEY the shares are all that is waited.
func TestEqualSitesAreSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := rapid.IntRange(1, 6).Draw(t, "sites")
		for _, policy := range sched.Projected() {
			c := sched.NewCoalitions(policy, 0, 0, 0)
			changed := make([]int32, sites)
			for o := range sites {
				c.Join(0, 0)
				changed[o] = int32(o)
			}
			now, cores := int64(0), int64(0)
			for range rapid.IntRange(1, 9).Draw(t, "steps") {
				now += rapid.Int64Range(0, 80).Draw(t, "later")
				d := drawChange(t, now, cores)
				cores += d.Cores
				c.Step(now, slices.Repeat([]sched.Change{d}, sites), changed, 0)
			}
			sum := new(big.Int)
			for o := range sites {
				sum.Add(sum, schedtest.Big(c.Fair(o)))
				if c.Fair(o) != c.Fair(0) {
					t.Fatalf("%s: equal sites have %v and %v", policy, c.Fair(o), c.Fair(0))
				}
			}
			if want := new(big.Int).Mul(schedtest.Big(c.Total()), big.NewInt(c.Scale())); policy == sched.Shapley &&
				sum.Cmp(want) != 0 {
				t.Fatalf("shares sum to %v, all wait %v", sum, want)
			}
		}
	})
}

// TestLimitsGiveWay: the thirteenth site has CE take over from SHAPLEY with the
// same queues, and the 257th ALONE from sched.CE.
func TestLimitsGiveWay(t *testing.T) {
	c, ce := sched.NewCoalitions(sched.Shapley, 0, 0, 0), sched.NewCoalitions(sched.CE, 0, 0, 0)
	step := func(now int64, o int) {
		for _, c := range []*sched.Coalitions{c, ce} {
			d := make([]sched.Change, c.Sites())
			d[o].Cores = 1
			d[o].New.Add(int64(5+o), 10, now)
			c.Step(now, d, []int32{int32(o)}, 0)
		}
	}
	for o := range sched.MaxCE + 1 {
		c.Join(0, 0)
		ce.Join(0, 0)
		if o < 40 {
			step(int64(o), o)
		}
		if want := sched.Effective(sched.Shapley, o+1); c.Policy() != want {
			t.Fatalf("%d sites: %s, want %s", o+1, c.Policy(), want)
		}
		if o < sched.MaxShapley {
			continue
		}
		for i := range 20 {
			if i <= o && c.Fair(i) != ce.Fair(i) {
				t.Fatalf("%d sites, %s: site %d has %v, by CE all along %v", o+1, c.Policy(), i, c.Fair(i), ce.Fair(i))
			}
		}
	}
	if c.Policy() != sched.Alone || sched.MaxSites(sched.Shapley) != 12 || sched.MaxSites(sched.CE) != 256 ||
		sched.MaxSites(sched.Alone) != 0 {
		t.Fatal(c.Policy())
	}
}

// TestNoCores: a site without cores goes last whenever anything of its own is to be
// served; where nobody has any, all shares are equal.
func TestNoCores(t *testing.T) {
	for _, policy := range sched.Projected() {
		c := sched.NewCoalitions(policy, 0, 0, 0)
		d := make([]sched.Change, 3)
		for o := range d {
			c.Join(0, 0)
			d[o].New.Add(10, 100, 0)
		}
		c.Step(0, d, []int32{0, 1, 2}, 0)
		if c.Fair(0) != c.Fair(1) || c.Fair(1) != c.Fair(2) {
			t.Errorf("%s: nobody has cores: %v, %v, %v", policy, c.Fair(0), c.Fair(1), c.Fair(2))
		}
		d = make([]sched.Change, 3)
		d[0].Cores, d[1].Cores = 2, 3
		c.Step(1, d, []int32{0, 1}, 0)
		p, _ := sched.New(policy, sched.Partial)
		rank := func(o int, wait int64) sched.Rank {
			a := sched.Account{Projection: sched.Projection{
				Waits: sched.Waits{Started: sched.Int64(wait), Units: 10}, Fair: c.Fair(o), Scale: c.Scale(),
				Ahead: c.Total(), Queued: 30,
			}}
			return p.Rank(&a, 1)
		}
		if rank(2, 1<<50).Compare(rank(0, 0)) >= 0 || rank(2, 1<<50).Compare(rank(1, 0)) >= 0 {
			t.Errorf("%s: a site without cores goes before another", policy)
		}
		if rank(0, 0).Compare(rank(1, 0)) >= 0 {
			t.Errorf("%s: who has fewer cores goes first", policy)
		}
	}
}

// TestNoCoresHaveOne: with least 1 a coalition without cores has one. A site that brings
// none stands as one with a core, adds nothing to any coalition that has some, and its
// own wait ends.
func TestNoCoresHaveOne(t *testing.T) {
	for _, policy := range sched.Projected() {
		c := sched.NewCoalitions(policy, 1, 0, 0)
		for range 3 {
			c.Join(0, 0)
		}
		d := make([]sched.Change, 3)
		d[0].Cores, d[1].Cores = 1, 3
		for o := range d {
			d[o].New.Add(4, 100, 0)
		}
		c.Step(0, d, []int32{0, 1, 2}, 0)
		if want := sched.Int64(0 + 100 + 200 + 300); c.Own(2) != want || c.Own(0) != want {
			t.Errorf("%s: four on one core wait %v, on none %v, want %v", policy, c.Own(0), c.Own(2), want)
		}
		if want := sched.Int64(4 * (0 + 100 + 200)); c.Total() != want {
			t.Errorf("%s: twelve on four cores wait %v, want %v", policy, c.Total(), want)
		}
		d[2] = sched.Change{Cores: 1}
		c.Step(10, d, []int32{2}, 0)
		d[2] = sched.Change{Cores: -1}
		c.Step(20, d, []int32{2}, 0)
		if want := sched.Int64(600); c.Own(2) != want {
			t.Errorf("%s: lent one and took it back: it waits %v alone, want %v", policy, c.Own(2), want)
		}
	}
}
