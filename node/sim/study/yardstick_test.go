package study

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// Jobs as they are have a yardstick for each weight, and a row that lacks one, or
// one of whose numbers does not add up, is played again.
func TestJobsAsTheyAre(t *testing.T) {
	s := smallStudy(t)
	s.Setup.Unit = 0
	s.Beyond, s.Loads = []string{sched.Alone}, []float64{4}
	for _, r := range playAll(t, s) {
		if !s.measured(r) || len(r.Yardsticks) != len(sim.Weights()) {
			t.Fatalf("instance %d: %+v", r.Index, r.Yardsticks)
		}
		y := &r.Yardsticks[sim.ByCore]
		y.Waits[0][1] = -1
		if s.measured(r) {
			t.Error("a negative wait is taken")
		}
		y.Waits[0][1], y.Total = 0, y.Total+1
		if s.measured(r) {
			t.Error("a total that φ does not add up to is taken")
		}
	}
}

// A tournament of equal tasks has one yardstick: undeserved waits are half the L1
// distance, and every contestant has the total of the counted coalition.
func TestUndeservedIsHalfTheDistance(t *testing.T) {
	s := smallStudy(t)
	s.Beyond, s.Sample = sched.Projected(), 0
	waited := 0
	for _, r := range playAll(t, s) {
		if len(r.Yardsticks) != 1 || len(r.Yardsticks[0].Waits) != len(s.contestants()) {
			t.Fatalf("instance %d has %d yardsticks", r.Index, len(r.Yardsticks))
		}
		fair := r.Fair()
		for i, waits := range r.Yardsticks[0].Waits {
			if sim.Sum(waits) != r.Total || 2*fair.Undeserved(waits) != fair.L1(waits) {
				t.Errorf("instance %d, %s: waits %v of %d, undeserved %d, L1 %d", r.Index, s.contestants()[i], waits, r.Total, fair.Undeserved(waits), fair.L1(waits))
			}
		}
		if r.Total > 0 {
			waited++
		}
	}
	if waited == 0 {
		t.Error("nobody waited")
	}
}
