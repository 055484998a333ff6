package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
)

// randomLed is a random case with a hostile leader.
func randomLed(rng *rand.Rand) *Case {
	c := randomCase(rng, 2+rng.IntN(4))
	c.Leader = &HostileLeader{
		Site: rng.IntN(len(c.Cores)), Withhold: rng.Int64N(80), Ends: rng.IntN(2) == 0, Selective: rng.IntN(2) == 0,
	}
	return c
}

// A leader that withholds nothing, and whose proposals are the first anyway, is an honest one: the same state.
func TestIdleLeaderIsHonest(t *testing.T) {
	for seed := range seeds(400) {
		rng := rand.New(rand.NewPCG(seed, 31))
		c := randomCase(rng, 1+rng.IntN(5))
		want, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Leader = &HostileLeader{Ends: rng.IntN(2) == 0}
		got, err := Play(c)
		if err != nil || got.Hash != want.Hash || !slices.Equal(got.Start, want.Start) || got.Withheld != 0 {
			t.Fatalf("seed %d: %v, starts %v, led honestly %v", seed, err, got, want)
		}
	}
}

// Of submissions of one moment the leader's own is the first, and so is its task.
func TestLeadersOwnGoesFirst(t *testing.T) {
	// Site 3 has the machine, on which its own user's task runs until second 10; of two who wait for it from
	// second 5 on, level with each other, the one goes first that was ordered first.
	c := &Case{Cores: []int64{1, 1, 2}, Params: Params(sched.SimplDirect), Seed: 1, Tasks: []Task{
		{Run: 10, Width: 2, Site: 2, Job: 1, Background: true},
		{Release: 5, Run: 3, Width: 2, Site: 0, Job: 2},
		{Release: 5, Run: 3, Width: 2, Site: 1, Job: 3},
	}}
	for _, tt := range []struct {
		leader *HostileLeader
		first  int
	}{{nil, 1}, {&HostileLeader{Site: 0}, 1}, {&HostileLeader{Site: 1}, 2}, {&HostileLeader{Site: 2}, 1}} {
		c.Leader = tt.leader
		out, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		if out.Start[tt.first] != 10 || out.Start[3-tt.first] != 13 {
			t.Errorf("leader %+v: starts %v, want task %d first", tt.leader, out.Start, tt.first)
		}
	}
}

// What is withheld is ordered after exactly the delay, by a selective leader at the latest, all else at once, the
// leader's before all others', and nothing is lost.
func TestWithheldIsOrderedAfterTheDelay(t *testing.T) {
	var withheld uint64
	for seed := range seeds(400) {
		c := randomLed(rand.New(rand.NewPCG(seed, 32)))
		p, err := newPlayer(c, fsm.New())
		if err != nil {
			t.Fatal(err)
		}
		var events []fsm.Event
		p.state.Observe(&events)
		out, err := p.run(t.Context())
		if err != nil {
			t.Fatalf("seed %d, leader %+v: %v", seed, c.Leader, err)
		}
		checkOrder(t, seed, p, events)
		for width, n := range p.view.waiting {
			if n != 0 {
				t.Fatalf("seed %d, leader %+v: at the end %d tasks %d wide wait", seed, c.Leader, n, width)
			}
		}
		withheld += out.Withheld
	}
	if withheld == 0 {
		t.Error("nothing was ever withheld")
	}
}

// checkOrder compares when submissions and ends were ordered with when they were proposed, in seconds.
func checkOrder(t *testing.T, seed uint64, p *player, events []fsm.Event) {
	t.Helper()
	leader := p.c.Leader
	delay := func(site string, withheld bool) int64 {
		if withheld && site != SiteName(leader.Site) {
			return leader.Withhold
		}
		return 0
	}
	var submitted, ended, published, others uint64
	for _, e := range events {
		var proposed, later int64
		switch e.Kind {
		case fsm.EventJobSubmitted:
			proposed = p.c.Tasks[p.view.shells[e.Job.Site].jobs[e.Job.Num]].Release * 1000
			later = delay(e.Job.Site, true)
			submitted += uint64(e.Count)
			own := e.Job.Site == SiteName(leader.Site)
			if own && others == e.Index {
				t.Fatalf("seed %d, leader %+v: in entry %d its submission is behind another one", seed, leader, e.Index)
			}
			if !own {
				others = e.Index
			}
		case fsm.EventTaskEnded:
			task := int(p.view.shells[e.Job.Site].jobs[e.Job.Num]) + int(e.Task)
			proposed = (p.out.Start[task] + p.c.Tasks[task].Run) * 1000
			later = delay(SiteName(p.out.Site[task]), leader.Ends)
			ended++
		default:
			continue
		}
		late := e.Time - proposed
		if late != later*1000 && (!leader.Selective || late < 0 || late > later*1000) {
			t.Fatalf("seed %d, leader %+v: %s of %s, proposed at %d ms, was ordered at %d", seed, leader, e.Kind, e.Job,
				proposed, e.Time)
		}
	}
	for i := range p.c.Tasks {
		if !p.c.Tasks[i].Background && !p.atHome[i] {
			published++
		}
	}
	if submitted != published || ended != published {
		t.Fatalf("seed %d, leader %+v: of %d tasks %d were submitted, %d ended", seed, leader, published, submitted,
			ended)
	}
}

// Whatever a leader withholds, every task runs once, and no machine runs more than it has cores.
func TestLedTasksAreRun(t *testing.T) {
	policies := append(sched.Names(), sched.Projected()...)
	for seed := range seeds(1500) {
		rng := rand.New(rand.NewPCG(seed, 33))
		c := randomLed(rng)
		c.Params.Policy = policies[rng.IntN(len(policies))]
		c.Conduct = make([]Conduct, len(c.Cores))
		out, err := Play(c)
		if err != nil {
			t.Fatalf("seed %d, leader %+v: %v", seed, c.Leader, err)
		}
		checkRoom(t, seed, "a hostile leader", c, out)
		again, err := Play(c)
		if err != nil || again.Hash != out.Hash || !slices.Equal(again.Start, out.Start) {
			t.Fatalf("seed %d: another run of the same case: %v", seed, err)
		}
	}
}

// A leader that is no site, or withholds for longer than it leads, is refused.
func TestBadLeadersAreRefused(t *testing.T) {
	for _, l := range []HostileLeader{{Site: 2}, {Site: -1}, {Withhold: -1}, {Withhold: MaxWithhold + 1}} {
		c := &Case{Cores: []int64{1, 1}, Params: Params(sched.Default), Leader: &l}
		if _, err := Play(c); !errors.Is(err, ErrBadCase) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// A leader that tries variants of each entry ends with all tasks run, whatever it lays aside; one that tries the honest
// one only is honest.
func TestGrindingLeader(t *testing.T) {
	for seed := range seeds(100) {
		rng := rand.New(rand.NewPCG(seed, 37))
		c := randomCase(rng, 2+rng.IntN(4))
		c.Leader = &HostileLeader{Withhold: 1 + rng.Int64N(20), Ends: rng.IntN(2) == 0, Lends: rng.IntN(2) == 0}
		for _, variants := range []int{1, 8} {
			c.Leader.Variants = variants
			out, err := Play(c)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if slices.Contains(out.Start, -1) || variants == 1 && out.Withheld > 0 {
				t.Fatalf("seed %d: starts %v, %d withheld", seed, out.Start, out.Withheld)
			}
		}
	}
}
