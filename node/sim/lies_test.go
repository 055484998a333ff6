package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
)

// An honest conduct, timeouts or not, changes nothing of a run under the paper's
// policies: they do not look at lengths.
func TestHonestConductChangesNothing(t *testing.T) {
	for seed := range seeds(300) {
		rng := rand.New(rand.NewPCG(seed, 21))
		c := randomCase(rng, 1+rng.IntN(4))
		want, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Play(c.Honest())
		if err != nil || !slices.Equal(got.Start, want.Start) || !slices.Equal(got.Site, want.Site) {
			t.Fatalf("seed %d: %v, starts %v at %v, without conduct %v at %v", seed, err, got.Start, got.Site, want.Start, want.Site)
		}
	}
}

// Whatever a site does, every task runs once, on its machine or another's, and no
// machine runs more than it has cores.
func TestLiesAreRun(t *testing.T) {
	policies := append(sched.Names(), sched.Projected()...)
	for seed := range seeds(400) {
		rng := rand.New(rand.NewPCG(seed, 22))
		c := randomCase(rng, 2+rng.IntN(3))
		c.Params.Policy = policies[rng.IntN(len(policies))]
		for _, lie := range Lies() {
			told := lie.Told(c, 1+Coalition(rng.IntN(int(Grand(len(c.Cores))))), 20)
			out, err := Play(told)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, lie.Name, err)
			}
			checkRoom(t, seed, lie.Name, told, out)
		}
	}
}

func checkRoom(t *testing.T, seed uint64, lie string, c *Case, out *Outcome) {
	t.Helper()
	type change struct{ at, cores int64 }
	changes := make([][]change, len(c.Cores))
	for i, task := range c.Tasks {
		site := out.Site[i]
		if out.Start[i] < task.Release || site == Nowhere {
			t.Fatalf("seed %d, %s: task %+v starts at %d at %d", seed, lie, task, out.Start[i], site)
		}
		run := task.Run
		if site != task.Site && !task.Background {
			run += c.Conduct[site].Lag
		}
		changes[site] = append(changes[site], change{out.Start[i], task.Width}, change{out.Start[i] + run, -task.Width})
	}
	for site, list := range changes {
		slices.SortFunc(list, func(a, b change) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return int(a.cores - b.cores)
		})
		used := int64(0)
		for _, x := range list {
			if used += x.cores; used > c.Cores[site] {
				t.Fatalf("seed %d, %s: site %d runs %d cores of %d at %d", seed, lie, site, used, c.Cores[site], x.at)
			}
		}
	}
}

// A site that is away runs its own tasks itself and nobody else's; others do not
// run its.
func TestAwayIsAlone(t *testing.T) {
	c := &Case{Cores: []int64{1, 1}, Params: Params(sched.Default)}
	for i := range 6 {
		c.Tasks = append(c.Tasks, Task{Release: int64(i / 3), Run: 5, Width: 1, Site: i / 3, Job: int64(i)})
	}
	lie := Lie{Name: "away", tell: away(func(int64) [2]int64 { return [2]int64{0, 11} })}
	out, err := Play(lie.Told(c, 1, 100))
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range c.Tasks {
		if task.Site == 0 && out.Site[i] != 0 {
			t.Errorf("task %d of the site that is away runs at site %d", i, out.Site[i])
		}
		if task.Site == 1 && out.Site[i] == 0 && out.Start[i] < 11 {
			t.Errorf("task %d runs at the site that is away, from %d on", i, out.Start[i])
		}
	}
}

// A site that withdraws idle cores while only others wait runs nothing for them; as
// soon as a task of its own waits, it exposes all.
func TestWithdrawnCoresRunNothing(t *testing.T) {
	c := &Case{Cores: []int64{2, 1}, Params: Params(sched.Default), Conduct: []Conduct{{Withdraw: true}, {}}}
	for i := range 6 {
		c.Tasks = append(c.Tasks, Task{Release: 1, Run: 5, Width: 1, Site: 1, Job: int64(i)})
	}
	c.Tasks = append(c.Tasks, Task{Release: 12, Run: 5, Width: 1, Site: 0, Job: 9})
	out, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if out.Site[i] == 0 && out.Start[i] < 12 {
			t.Errorf("task %d runs at site 0 from %d", i, out.Start[i])
		}
	}
	if out.Start[6] != 12 || out.Site[6] != 0 {
		t.Errorf("its own task starts at %d at site %d", out.Start[6], out.Site[6])
	}
}
