package sched_test

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/sched/schedtest"
)

// drawChange draws what one entry does to a site with so many cores.
func drawChange(t *rapid.T, now, cores int64) (c sched.Change) {
	draw := func(most int64, what string) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
	if draw(3, "resize?") == 0 {
		c.Cores = draw(6, "cores") - cores
	}
	for range draw(2, "new") {
		c.New.Add(draw(30, "units"), 1+draw(60, "length"), now)
	}
	if draw(3, "past?") == 0 {
		c.Past.Add(1+draw(4, "units"), 1+draw(60, "length"), max(0, now-draw(100, "ago")))
	}
	if draw(3, "gone?") == 0 {
		c.Gone.Add(1+draw(20, "units"), 1+draw(60, "length"), max(0, now-draw(100, "ago")))
	}
	if draw(3, "longer?") == 0 {
		c.Longer.Add(1+draw(4, "units"), 1+draw(60, "length"), 0)
	}
	if draw(2, "correct?") == 0 {
		c.Corrected = sched.Int64(draw(400, "by") - 200)
	}
	return c
}

// TestQueueIsNaive compares every number of a queue with one that walks from
// unit to unit, over random changes, and after a copy and a restored one took
// over.
func TestQueueIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least, now := rapid.Int64Range(0, 1).Draw(t, "least"), int64(0)
		q, p := sched.NewQueue(least, 0), schedtest.NewQueue(least, 0)
		limit := rapid.SampledFrom([]int{2, 5, 1000}).Draw(t, "limit")
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now += rapid.Int64Range(0, 80).Draw(t, "later")
			c := drawChange(t, now, p.Lent)
			before := q.Clone().State()
			frozen := q.Clone()
			if q.Step(now, &c, limit); !equalState(frozen.State(), before) {
				t.Fatal("a step changed a copy")
			}
			p.Step(now, &c, limit)
			compareQueue(t, q, p)
			if rapid.Bool().Draw(t, "restore") {
				r, err := sched.RestoreQueue(q.Clone().State())
				if err != nil {
					t.Fatalf("%v: %+v", err, q.State())
				}
				q = r
			}
			q.Count()
			later := q.Clone()
			later.Step(now+rapid.Int64Range(0, 500).Draw(t, "wait"), &sched.Change{}, 1000)
			if s := q.State(); len(s.Away) == 0 && s.Work == sched.Mul64(s.Units, s.Length) &&
				later.Total() != q.Total() {
				t.Fatalf("total %v became %v with time alone", q.Total(), later.Total())
			}
		}
	})
}

func compareQueue(t *rapid.T, q *sched.Queue, p *schedtest.Queue) {
	t.Helper()
	s := q.State()
	if s.Units != p.Units || s.Length != p.Length || schedtest.Big(s.Work).Cmp(p.Work) != 0 {
		t.Fatalf("%d units of %d, %v together; naively %d of %d, %v", s.Units, s.Length, s.Work, p.Units, p.Length, p.Work)
	}
	if want := new(big.Int).Sub(p.Starts, p.Rels); schedtest.Big(s.Settled).Cmp(want) != 0 {
		t.Fatalf("settled %v, naively %v", s.Settled, want)
	}
	for _, v := range []struct {
		f []sched.Slot
		p []int64
	}{{s.Free, p.Cores}, {s.Away, p.Away}} {
		want := slices.Sorted(slices.Values(v.p))
		if got := unfold(v.f); !slices.Equal(got, want) {
			t.Fatalf("cores free at %v, naively at %v", got, want)
		}
	}
	if got, want := schedtest.Big(q.Total()), p.Total(); got.Cmp(want) != 0 {
		t.Fatalf("total %v, naively %v", got, want)
	}
}

func unfold(f []sched.Slot) (out []int64) {
	for _, s := range f {
		for range s.Cores {
			out = append(out, s.At)
		}
	}
	return out
}

func equalState(a, b sched.QueueState) bool {
	return a.Clock == b.Clock && a.Least == b.Least && a.Lent == b.Lent && a.Units == b.Units && a.Length == b.Length &&
		a.Work == b.Work && a.Settled == b.Settled &&
		slices.Equal(a.Free, b.Free) && slices.Equal(a.Away, b.Away)
}
