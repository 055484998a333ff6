package study

import (
	"context"
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
)

func playAll(t *testing.T, s *Study) (rows []*Row) {
	t.Helper()
	if err := s.Run(t.Context(), 2, nil, func(r *Row) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The sample of the default study has something of every load, mapping and
// scenario: every 50th instance had been of one load and one mapping.
func TestSampleFavoursNothing(t *testing.T) {
	for seed := range uint64(5) {
		s := DefaultStudy(openSample(t))
		s.Setup.Seed = seed
		loads, mappings, scenarios, all := map[float64]int{}, map[int]int{}, map[sim.Scenario]int{}, 0
		for i, k := range s.keys() {
			if s.sampled(i) {
				loads[k.load]++
				mappings[k.mapping]++
				scenarios[k.scenario]++
				all++
			}
		}
		if len(loads) != len(s.Loads) || len(mappings) != s.Mappings || len(scenarios) != 3 || all < 12 || all > 40 {
			t.Errorf("seed %d: %d of %d instances: by load %v, mapping %v, scenario %v", seed, all, s.Size(), loads, mappings, scenarios)
		}
	}
}

// However rare the sample, brokers play all coalitions of an instance of each
// scenario; nobody's waiting would show nothing.
func TestEveryScenarioIsSampled(t *testing.T) {
	s := smallStudy(t)
	s.Mappings, s.Loads, s.Sample = 1, []float64{0.01, 0.75, 1.5}, 1e9
	played := map[sim.Scenario]int{}
	for _, r := range playAll(t, s) {
		if r.Played {
			played[r.Scenario]++
			if r.Total == 0 {
				t.Errorf("instance %d was played though nobody waits in it", r.Index)
			}
		}
	}
	for _, scenario := range s.Scenarios {
		if played[scenario] != 1 {
			t.Errorf("scenario %d: %d instances were played, want 1", scenario, played[scenario])
		}
	}
}

func TestSampleOfAllAndOfNone(t *testing.T) {
	s := smallStudy(t)
	s.Mappings, s.Loads = 1, []float64{0.01, 1.5}
	idle := 0
	for _, every := range []int{1, 0} {
		s.Sample = every
		for _, r := range playAll(t, s) {
			if r.Total == 0 {
				idle++
			}
			if r.Played != (every == 1 && r.Total > 0) {
				t.Errorf("sample %d: instance %d waits %d seconds, played %t", every, r.Index, r.Total, r.Played)
			}
		}
	}
	if idle == 0 {
		t.Error("somebody waits in every instance: the test shows nothing")
	}
}

// Looking for an instance with waits ends with the study.
func TestSampleEndsWithTheStudy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := smallStudy(t).sample(ctx, smallStudy(t).keys()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled study's sample: %v", err)
	}
}
