package study

import (
	"math"
	"testing"
)

// blocksOf is a duel with so many wins and losses in each period of one log.
func blocksOf(periods ...[2]int) *Duel {
	d := &Duel{}
	for p, n := range periods {
		for range n[0] {
			d.add(&Row{Log: "log", Period: p}, -1)
		}
		for range n[1] {
			d.add(&Row{Log: "log", Period: p}, 1)
		}
	}
	return d
}

// Instances of one period are no independent evidence: the same 40 wins and 20
// losses say less if each period is all wins or all losses.
func TestIntervalRespectsPeriods(t *testing.T) {
	var mixed, whole [][2]int
	for range 10 {
		mixed, whole = append(mixed, [2]int{4, 2}), append(whole, [2]int{6, 0})
	}
	for i := range 4 {
		whole[i] = [2]int{0, 6}
	}
	low, high := blocksOf(mixed...).Interval()
	if low != 2 || high != 2 {
		t.Errorf("periods that all say 2 : 1 give %v to %v", low, high)
	}
	low, high = blocksOf(whole...).Interval()
	if low > 1 || high < 3 {
		t.Errorf("periods that disagree give %v to %v", low, high)
	}
	again, _ := blocksOf(whole...).Interval()
	if again != low {
		t.Errorf("another interval of the same rows: %v, %v", low, again)
	}
}

// Other logs do not stand in for a log's periods: each log keeps its weight.
func TestIntervalKeepsLogs(t *testing.T) {
	d := &Duel{}
	for p := range 6 {
		d.add(&Row{Log: "a", Period: p}, -1)
		d.add(&Row{Log: "b", Period: p}, 1)
	}
	if low, high := d.Interval(); low != 1 || high != 1 {
		t.Errorf("one log is all wins, the other all losses: %v to %v", low, high)
	}
}

func TestIntervalOfNothing(t *testing.T) {
	d := &Duel{}
	d.add(&Row{}, 0)
	if low, high := d.Interval(); !math.IsNaN(low) || !math.IsNaN(high) || d.String() != "0 : 0" {
		t.Errorf("ties only: %v to %v, %q", low, high, d)
	}
	if low, _ := blocksOf([2]int{3, 0}).Interval(); !math.IsInf(low, 1) {
		t.Errorf("no losses: from %v", low)
	}
}
