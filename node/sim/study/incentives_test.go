package study

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// A lie's row tells of the instances drawn, and the table is the same whatever the
// order of work.
func TestIncentives(t *testing.T) {
	s := smallStudy(t)
	s.Beyond, s.Policies, s.Periods, s.Scenarios = nil, []string{sched.SimplDirect, sched.Alone}, 1,
		[]sim.Scenario{sim.Equal, sim.Background}
	r := &IncentiveReport{Study: s}
	if err := s.Incentives(t.Context(), 2, 2, func(g []Gain) { r.Gains = append(r.Gains, g...) }); err != nil {
		t.Fatal(err)
	}
	table := r.Table()
	if len(table) != len(sim.Lies())*2 || len(r.Gains) == 0 {
		t.Fatalf("%d rows, %d gains", len(table), len(r.Gains))
	}
	slices.Reverse(r.Gains)
	if !slices.Equal(table, r.Table()) {
		t.Error("the table depends on the order of the gains")
	}
	for _, e := range table {
		if e.Lie == sim.Lies()[0].Name && e.Policy == sched.SimplDirect && (e.Own != 0 || e.Better+e.Worse != 0) {
			t.Errorf("timeouts matter to %s: %+v", e.Policy, e)
		}
	}
}

// Splitting changes nothing of what work waits if the parts run as the whole would.
func TestPartsWaitAsTheWhole(t *testing.T) {
	c := &sim.Case{Cores: []int64{2, 1}, Tasks: []sim.Task{{Release: 5, Run: 100, Width: 2, Site: 0, Job: 1}}}
	parts := sim.Lies()[2].Told(c, 1, 0) // splits each task in four
	whole, split := &sim.Outcome{Start: []int64{12}}, &sim.Outcome{Start: []int64{12, 37, 62, 87}}
	own, _ := ownAndOthers(c, whole, 1, c)
	again, _ := ownAndOthers(parts, split, 1, c)
	if own != 2*200*7 || again != own {
		t.Errorf("the whole waits %d, its parts %d, want %d", own, again, 2*200*7)
	}
}
