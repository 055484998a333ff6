package study

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// TestSeriesTellsRanges: a series plays each log by itself under each seed, large logs for
// fewer periods, and its report says the same each time, with all ranges.
func TestSeriesTellsRanges(t *testing.T) {
	study := smallStudy(t)
	study.Periods, study.Mappings, study.Loads, study.Sample = 3, 1, []float64{1.5}, 0
	study.Scenarios, study.Policies, study.Beyond = []sim.Scenario{sim.Equal}, []string{sched.SimplDirect},
		[]string{sched.Alone}
	log := study.Workloads[0]
	mean := log.UnitTasks(study.Setup.Unit) * study.Setup.Period / (log.Span() + 1)
	s := &Series{Study: study, Seeds: 2, Tasks: 2*mean + 1}
	parts, err := s.Parts()
	if err != nil || len(parts) != 2*len(study.Workloads) || parts[0].Study.Periods != 2 ||
		parts[1].Study.Setup.Seed != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	var names []string
	for i := range parts {
		err := parts[i].Study.Run(t.Context(), 1, nil, func(r *Row) error {
			parts[i].Rows = append(parts[i].Rows, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, parts[i].Name())
	}
	if len(names) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		t.Errorf("parts have one name: %s", names)
	}
	var text [2]strings.Builder
	for i := range text {
		if err := (&SeriesReport{Series: s, Parts: parts, Command: "typed"}).Markdown(&text[i]); err != nil {
			t.Fatal(err)
		}
	}
	if text[0].String() != text[1].String() || !strings.Contains(text[0].String(), "| ALONE | all |") ||
		!strings.Contains(text[0].String(), "| seeds |") {
		t.Errorf("report:\n%s", text[0].String())
	}
	s.Seeds = 0
	if _, err := s.Parts(); !errors.Is(err, sim.ErrBadCase) {
		t.Errorf("no seed: %v", err)
	}
}

// TestRangesOfDuels: the least and the greatest ratio are those of one log, and the
// interval over logs is wider than that of one log's periods.
func TestRangesOfDuels(t *testing.T) {
	duel := func(wins, losses int) *Duel { return &Duel{Wins: wins, Losses: losses} }
	if got := span([]*Duel{duel(6, 2), duel(0, 0), duel(9, 0), duel(1, 2)}); got != "0.5 to ∞" {
		t.Error(got)
	}
	if got := span([]*Duel{duel(0, 0)}); got != "–" {
		t.Error(got)
	}
	d := &Duel{}
	for i, log := range []string{"a", "b", "c", "d"} {
		for period := range 10 {
			for n := range 10 {
				won := -1
				if n <= 2*i { // of log a one in ten is lost, of d seven
					won = 1
				}
				d.add(&Row{Log: log, Period: period}, won)
			}
		}
	}
	low, high := d.Interval()
	wideLow, wideHigh := d.IntervalOverLogs()
	if !(wideLow < low && low <= high && high < wideHigh) {
		t.Errorf("by periods %.2f to %.2f, by logs %.2f to %.2f", low, high, wideLow, wideHigh)
	}
}
