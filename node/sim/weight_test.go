package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
)

// On one core the sum of core-minutes times waits does not depend on the order,
// whatever the lengths; the sum of waits does.
func TestWorkWaitsTheSame(t *testing.T) {
	differ := false
	for seed := range seeds(200) {
		rng := rand.New(rand.NewPCG(seed, 12))
		c := &Case{Cores: []int64{1}, Params: Params(sched.Default), Seed: seed, Home: HomeNever}
		for i := range 8 {
			c.Tasks = append(c.Tasks, Task{Release: 0, Run: 60 * (1 + rng.Int64N(9)), Width: 1, Job: int64(i)})
		}
		rng.Shuffle(8, func(a, b int) { c.Tasks[a].Run, c.Tasks[b].Run = c.Tasks[b].Run, c.Tasks[a].Run })
		shortest := *c
		shortest.Tasks = slices.Clone(c.Tasks)
		slices.SortStableFunc(shortest.Tasks, func(a, b Task) int { return int(a.Run - b.Run) })
		sums := func(c *Case) (sums [2]int64) {
			out := playBare(c, firstCome{})
			return [2]int64{Sum(WaitsBy(c, out.Start, ByTask)), Sum(WaitsBy(c, out.Start, ByWork))}
		}
		a, b := sums(c), sums(&shortest)
		if a[1] != b[1] {
			t.Fatalf("seed %d: work waits %d in one order, %d in another", seed, a[1], b[1])
		}
		differ = differ || a[0] != b[0]
	}
	if !differ {
		t.Error("the sum of waits was the same in every order, too")
	}
}

// A coalition can run everything of its own: what is too wide takes all of its
// largest site, for as much longer.
func TestFoldedCoalitionRunsAll(t *testing.T) {
	for seed := range seeds(500) {
		rng := rand.New(rand.NewPCG(seed, 13))
		c := randomCase(rng, 1+rng.IntN(5))
		for s := Coalition(1); s <= Grand(len(c.Cores)); s++ {
			whole, sub := c.Of(s), c.folded(s)
			if err := sub.Validate(); err != nil {
				t.Fatalf("seed %d, coalition %b: %v", seed, s, err)
			}
			for i, start := range playBare(sub, firstCome{}).Start {
				a, b := &whole.Tasks[i], &sub.Tasks[i]
				if work := a.Width * a.Run; start < a.Release || b.Width*b.Run < work || b.Width*b.Run >= work+b.Width {
					t.Fatalf("seed %d, coalition %b: %+v became %+v and starts at %d", seed, s, *a, *b, start)
				}
			}
		}
	}
}

// With lengths known and one core a site, ALONE's virtual queue is what a site
// would wait alone, first come, first served.
func TestClairvoyantKnowsWhatAloneMeans(t *testing.T) {
	for seed := range seeds(300) {
		rng := rand.New(rand.NewPCG(seed, 15))
		c := randomCase(rng, 1+rng.IntN(4))
		for i := range c.Cores {
			c.Cores[i] = 1
		}
		for i := range c.Tasks {
			c.Tasks[i].Width, c.Tasks[i].Background = 1, false
		}
		turn := newClairvoyant(c)
		playBare(c, turn)
		for o := range c.Cores {
			alone := c.Of(1 << o)
			want := int64(0)
			for i, start := range playBare(alone, firstCome{}).Start {
				want += (start - alone.Tasks[i].Release) * alone.Tasks[i].Run
			}
			if got := turn.sites[o].Projection.Fair; got != sched.Int64(want) {
				t.Fatalf("seed %d: site %d alone waits %d, booked %v", seed, o, want, got)
			}
		}
	}
}

// What tasks declare is what the log's users asked for, unless they ran longer.
func TestDeclaredTimeouts(t *testing.T) {
	w := sample(t)
	w.Jobs = slices.Clone(w.Jobs)
	for i := range w.Jobs {
		w.Jobs[i].Asked = w.Jobs[i].Run + int64(i%3) - 1
	}
	for _, declare := range []Declare{DeclareNothing, DeclareAsked, DeclareTruth} {
		s := DefaultSetup()
		s.Unit, s.Declare = 0, declare
		in, err := w.Instance(&s, 3600, 0)
		if err != nil {
			t.Fatal(err)
		}
		in.Obey(Rules{})
		declared := 0
		for i := range in.Tasks {
			k := &in.Tasks[i]
			if k.Timeout != 0 {
				declared++
			}
			if declare == DeclareNothing && k.Timeout != 0 || declare == DeclareTruth && k.Timeout != k.Run ||
				k.Timeout != 0 && k.Timeout < k.Run {
				t.Fatalf("%q: %+v", declare, *k)
			}
		}
		if declare == DeclareAsked && (declared == 0 || declared == len(in.Tasks)) {
			t.Errorf("%d of %d tasks declare what was asked for", declared, len(in.Tasks))
		}
		if err := in.Validate(); err != nil {
			t.Error(err)
		}
	}
	s := DefaultSetup()
	if s.Declare = "asked"; s.Validate() == nil {
		t.Error("unit tasks declare what was asked for jobs")
	}
}

// With one site the ceiling has nobody to prefer, and with φ of the end known it is,
// over many instances, fairer than a policy that knows nothing.
func TestCeilingKnowsTheEnd(t *testing.T) {
	fairer, less := 0, 0
	for seed := range seeds(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		c := unitCase(rng, 3)
		v, err := c.Counted()
		if err != nil {
			t.Fatal(err)
		}
		fair, err := Shapley(v)
		if err != nil {
			t.Fatal(err)
		}
		c.Params.Policy = sched.RoundRobin
		out, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		best := playBare(c, newCeiling(c, ByTask, fair)).Waits(c)
		if Sum(best) != fair.Total {
			t.Fatalf("seed %d: it waits %d of %d", seed, Sum(best), fair.Total)
		}
		switch best, policy := fair.L1(best), fair.L1(out.Waits(c)); {
		case best < policy:
			fairer++
		case best > policy:
			less++
		}
	}
	if fairer < 2*less {
		t.Errorf("it is fairer in %d instances, less fair in %d", fairer, less)
	}
}
