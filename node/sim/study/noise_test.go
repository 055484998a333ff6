package study

import (
	"math"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Two policies, two periods: the first is fairer in three instances of period 0 and
// in one of period 1, the second in one and three.
func TestNoise(t *testing.T) {
	var rows []*Row
	for period, wins := range []int{3, 1} {
		for i := range 4 {
			waits := [][]int64{{50, 50}, {60, 40}}
			if i >= wins {
				slices.Reverse(waits)
			}
			rows = append(rows, &Row{Log: "x", Period: period, Scale: 2, Phi: []int64{100, 100}, Total: 100, Waits: waits})
		}
	}
	policies := []string{"a", "b"}
	all := TallyOf(rows, policies, sim.L1, nil)
	// Without one period the share is 1/4, without the other 3/4: the standard error
	// is √(1/2 · 2 · (1/4)²) = 1/4.
	if got := all.Noise(); !slices.Equal(all.Scores, []int{4, 4}) || !slices.Equal(got, []float64{0.5, 0.5}) {
		t.Errorf("scores %v, noise %v", all.Scores, got)
	}
	if got := all.NoiseAgainst(all); !slices.Equal(got, []float64{0, 0}) {
		t.Errorf("no change has noise %v", got)
	}
	one := TallyOf(rows, policies, sim.L1, func(r *Row) bool { return r.Period == 0 })
	if got := one.Noise(); !math.IsNaN(got[0]) {
		t.Errorf("one period has noise %v", got)
	}
}

// What other choices are compared with is among the study's own rows.
func TestVariantsShareInstances(t *testing.T) {
	s := smallStudy(t)
	variants := s.Open(1)
	if len(variants) != 10 {
		t.Fatalf("%d choices", len(variants))
	}
	for _, v := range variants {
		if err := v.Study.Validate(); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		shared := 0
		for _, k := range s.keys() {
			if v.Study.shares(&Row{Period: k.period, Mapping: k.mapping, Load: k.load, Scenario: k.scenario}) {
				shared++
			}
		}
		if shared != v.Study.Size() {
			t.Errorf("%s: %d of its %d instances are the study's, too", v.Name, shared, v.Study.Size())
		}
	}
}
