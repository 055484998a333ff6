package study

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// What leading brings is the same table whatever the order of work; a leader that withholds nothing has all wait as
// long together as an honest one, since tasks are equal.
func TestLeaders(t *testing.T) {
	s := smallStudy(t)
	s.Beyond, s.Policies, s.Periods = nil, []string{sched.SimplDirect, sched.RoundRobin}, 2
	s.Scenarios = []sim.Scenario{sim.Equal}
	ways := []Withheld{{}, {Seconds: 60}, {Seconds: 60, Ends: true}, {Seconds: 60, Ends: true, Selective: true}}
	var all []Led
	if err := s.Leaders(t.Context(), ways, 2, func(l []Led) { all = append(all, l...) }); err != nil {
		t.Fatal(err)
	}
	table := LeaderTable(all, s.Policies, ways)
	if len(table) != len(ways)*2 || len(all) == 0 || len(all)%len(table) != 0 {
		t.Fatalf("%d rows, %d runs", len(table), len(all))
	}
	slices.Reverse(all)
	if !slices.Equal(table, LeaderTable(all, s.Policies, ways)) {
		t.Error("the table depends on the order of the runs")
	}
	moved := false
	for _, l := range all {
		if l.Own.Tasks == 0 || l.Own.Tasks != l.OwnLed.Tasks || l.Others.Work != l.OthersLed.Work {
			t.Errorf("%+v: other tasks than under an honest leader", l)
		}
		total, led := l.Own.Wait+l.Others.Wait, l.OwnLed.Wait+l.OthersLed.Wait
		if l.Seconds == 0 && total != led {
			t.Errorf("%s, period %d: all wait %d s, led %d s, though nothing was withheld", l.Policy, l.Period, total, led)
		}
		moved = moved || l.Seconds > 0 && total != led
	}
	if !moved {
		t.Error("withholding changed no wait")
	}
}

// Gains are those of the sums, and by seed; utility grows by the work that runs earlier.
func TestLeaderTable(t *testing.T) {
	led := func(seed uint64, before, after int64) Led {
		l := Led{Log: "a", Seed: seed, Policy: "P"}
		for _, w := range []struct {
			to   *Waited
			wait int64
		}{{&l.Own, before}, {&l.OwnLed, after}, {&l.Others, 0}, {&l.OthersLed, 7}} {
			w.to.add(&sim.Task{Release: 5, Run: 10, Width: 2}, 5+w.wait, 100)
		}
		return l
	}
	g := LeaderTable([]Led{led(1, 10, 4), led(2, 10, 12)}, []string{"P"}, []Withheld{{}})[0]
	if g.Wait != 10 || g.Gain != 2 || g.Least != -2 || g.Most != 6 || g.UtilityGain != 2 || g.OthersLoss != 7 ||
		g.Better != 1 || g.Worse != 1 {
		t.Errorf("%+v", g)
	}
	// ψ of a task that starts at 15: 2 · 10 · (100 − 15 − 4.5) = 1610; 2 s earlier on average: + 20 · 2.
	if want := 40. / 1610; g.Utility < want-1e-12 || g.Utility > want+1e-12 {
		t.Errorf("utility grows by %v, want %v", g.Utility, want)
	}
}
