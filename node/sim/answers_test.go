package sim

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// TestAnswersAddUp: what starts in the very moment of its P90 is within it, medians are of
// all told.
func TestAnswersAddUp(t *testing.T) {
	var a, b Answers
	a.add(node.Estimate{P50: 10, P90: 20}, 10)
	a.add(node.Estimate{P50: 10, P90: 20}, 20)
	b.add(node.Estimate{P50: 10, P90: 40}, 41)
	a.Asked, b.Asked = 2, 7
	a.Plus(&b)
	if a.Asked != 9 || a.Told != 3 || a.WithinP50 != 1 || a.WithinP90 != 2 {
		t.Errorf("%+v", a)
	}
	if wait, p90 := a.Medians(); wait != 20 || p90 != 20 {
		t.Errorf("medians %d and %d", wait, p90)
	}
	if wait, p90 := (&Answers{}).Medians(); wait != 0 || p90 != time.Duration(0) {
		t.Errorf("medians of nothing %s and %s", wait, p90)
	}
}
