package study

import (
	"reflect"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/test/raced"
)

// estimateStudy is two days of the sample, its jobs as they are.
func estimateStudy(t *testing.T) *Study {
	t.Helper()
	s := DefaultStudy(openSample(t))
	s.Setup.Period, s.Setup.Unit, s.Setup.Sites = 48*3600, 0, 3
	s.Periods, s.Mappings, s.Loads, s.Scenarios, s.Policies, s.Beyond = 1, 1, []float64{1.5}, []sim.Scenario{sim.Equal},
		[]string{sched.Default}, nil
	return s
}

func estimateRuns(t *testing.T, s *Study, workers int) []EstimateRun {
	t.Helper()
	var all []EstimateRun
	if err := s.Estimates(t.Context(), workers, func(runs []EstimateRun) { all = append(all, runs...) }); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b EstimateRun) int { return a.Index - b.Index })
	return all
}

// TestEstimatesOfALog: a broker's estimator, fed with a log's runs, tells what holds about
// as often as it is told that it does, and the same each time.
func TestEstimatesOfALog(t *testing.T) {
	s := estimateStudy(t)
	runs := estimateRuns(t, s, 1)
	if !raced.Enabled {
		if again := estimateRuns(t, s, 2); !reflect.DeepEqual(runs, again) {
			t.Error("two workers come to something else than one")
		}
	}
	var sums [sim.AskedKinds]sim.Answers
	for i := range runs {
		sums[runs[i].At].Plus(&runs[i].Answers)
	}
	for at := range sums {
		a := &sums[at]
		held := float64(a.WithinP90) / float64(a.Told)
		wait, p90 := a.Medians()
		t.Logf("asked at %s: %d, told %d, of these %d within P50, %d within P90; median wait %s, P90 %s", sim.AskedAt(at), a.Asked, a.Told, a.WithinP50, a.WithinP90, wait, p90)
		if a.Told < 50 || held < 0.85 {
			t.Errorf("asked at %s: of %d told %.2f started within their P90", sim.AskedAt(at), a.Told, held)
		}
	}
}
