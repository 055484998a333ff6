package sched

import (
	"math/big"
	"testing"
)

// TestExcessIsInRange: at the bounds of everything the excess fits, and Excess
// is exact there.
func TestExcessIsInRange(t *testing.T) {
	most, low := new(big.Int).Lsh(big.NewInt(1), 127), Int64(0)
	for _, w := range []Int128{low, MaxWait, {Hi: 1 << 62}} {
		for _, fair := range []Int128{low, MaxWait, MaxWait.Neg()} {
			for _, ahead := range []Int128{low, MaxWait, {Hi: 1 << 62}} {
				for _, units := range []int64{0, 1, MaxUnits, 1 << 62} {
					p := Projection{
						Waits: Waits{Started: w, Units: units, Released: Mul64(units, MaxNow)}, Scale: lcmTo(MaxShapley),
						Fair: fair.MulInt64(lcmTo(MaxShapley)), Ahead: ahead, Queued: 1 << 62,
					}
					want := new(big.Int).Sub(toBig(clamped(w)), toBig(fair))
					want.Mul(want, big.NewInt(MaxUnits))
					f := new(big.Int).Mul(toBig(clamped(ahead)), big.NewInt(min(units, MaxUnits)))
					want.Add(want, f).Mul(want, big.NewInt(p.Scale))
					if got := toBig(p.Excess(MaxNow)); got.Cmp(want) != 0 || want.CmpAbs(most) >= 0 {
						t.Fatalf("excess %v, should be %v", got, want)
					}
				}
			}
		}
	}
}

// TestQueueAtItsBounds: the greatest numbers neither panic nor turn a wait
// negative, and wait without end counts as MaxWait.
func TestQueueAtItsBounds(t *testing.T) {
	for _, cores := range []int64{0, 1, maxCores} {
		q := new(Queue)
		var c Change
		c.Cores = cores
		c.New = Batch{Units: MaxUnits, Work: Mul64(MaxUnits, MaxNow)}
		c.Corrected = Mul64(MaxUnits, MaxNow)
		q.Step(1, &c, minSlots)
		if got := q.Total(); cores < 2 && got != MaxWait || got.Sign() < 0 {
			t.Fatalf("%d cores: %v", cores, got)
		}
		c.Cores = 0
		for _, now := range []int64{2, MaxNow / 2, MaxNow} {
			q.Step(now, &c, minSlots)
			c.Corrected = c.Corrected.Neg()
			if got := q.Total(); got.Sign() < 0 || got.Cmp(MaxWait) > 0 {
				t.Fatalf("%d cores at %d: %v", cores, now, got)
			}
			if _, err := RestoreQueue(q.State()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMillionUnits: an array of a million is as cheap as one task.
func TestMillionUnits(t *testing.T) {
	q := new(Queue)
	var c Change
	c.Cores = 64
	c.New.Add(1_000_000, 3600, 0)
	q.Step(0, &c, minSlots)
	q.Step(halfway, &Change{}, minSlots)
	// Rounds of 64, 3600 apart: 15625 of them.
	if want := Mul64(64*3600, 15625*15624/2); q.Total() != want || len(q.free) > 2 {
		t.Fatalf("%v, want %v; %d times", q.Total(), want, len(q.free))
	}
}

// halfway is half of the time that the million take.
const halfway = 15625 * 3600 / 2
