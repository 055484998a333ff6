package sched

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
						Waits: Waits{Started: w, Units: units, Released: Mul64(units, MaxNow)},
						Scale: lcmTo(MaxShapley),
						Fair:  fair.MulInt64(lcmTo(MaxShapley)), Ahead: ahead, Queued: 1 << 62,
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

// TestRestoredQueueIsSafe: whatever RestoreQueue accepts, at the ends of all ranges,
// a step does not panic and the wait stays within its bounds.
func TestRestoredQueueIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, from ...int64) int64 { return rapid.SampledFrom(from).Draw(t, what) }
		wide := func(what string) Int128 {
			return Int128{pick(what, 0, 0, 1, 1<<40, -1, -1<<63, 1<<62), uint64(pick(what, 0, 1, 1<<40, -1))}
		}
		list := func(what string) (out []Slot) {
			for _, at := range [...]int64{0, 5, 1000, MaxNow, 1 << 50, maxAt} {
				if rapid.Bool().Draw(t, what) {
					out = append(out, Slot{at, pick(what, 1, 3, maxCores/8)})
				}
			}
			return out
		}
		s := QueueState{
			Clock: pick("clock", 0, 5, MaxNow), Units: pick("units", 0, 1, 7, MaxUnits), Length: pick("length", 0, 1, 1000, MaxNow),
			Work: wide("work"), Settled: wide("settled"), Free: list("free"), Away: list("away"),
		}
		if s.Units == 0 {
			s.Length, s.Work = 0, Int128{}
		} else {
			s.Length, s.Work = max(1, s.Length), Int128{max(0, s.Work.Hi), s.Work.Lo | 1<<44}
			s.Free = slices.DeleteFunc(s.Free, func(f Slot) bool { return f.At < s.Clock })
		}
		if s.Least = pick("least", 0, 1); s.Least == 1 {
			if len(s.Free) == 0 {
				s.Free = []Slot{{MaxNow, 1}}
			}
			s.Lent = slots(s.Free).capacity()
			s.Lent -= pick("none lent", 0, 1) * (1 / s.Lent)
		}
		q, err := RestoreQueue(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if v := q.Total(); v.Sign() < 0 || v.Cmp(MaxWait) > 0 {
				t.Fatalf("%+v waits %v", s, v)
			}
			c := Change{Cores: pick("cores", 0, -3, 2, 1000), Corrected: wide("corrected")}
			c.New.Add(pick("new", 0, 1, MaxUnits), pick("length", 1, MaxNow), 0)
			c.Gone.Add(pick("gone", 0, 1, MaxUnits), pick("length", 1, MaxNow), 0)
			c.Longer.Add(pick("longer", 0, 1, MaxUnits), pick("length", 1, MaxNow), 0)
			c.Past.Add(pick("past", 0, 1, MaxUnits), pick("length", 1, MaxNow), 0)
			q.Step(min(MaxNow, q.clock+pick("later", 0, 1, 60_000)), &c, 4)
		}
	})
}
