package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSeqListIsASortedList compares it with a list in one piece.
func TestSeqListIsASortedList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l seqList
		var want []uint64
		for range rapid.IntRange(0, 10).Draw(rt, "spans") {
			first := rapid.Uint64Range(0, 5000).Draw(rt, "first")
			step := rapid.Uint64Range(1, 5).Draw(rt, "step")
			out := rapid.Bool().Draw(rt, "out")
			for seq := first; seq < first+1500*step; seq += step {
				i, ok := slices.BinarySearch(want, seq)
				switch {
				case ok && out:
					want = slices.Delete(want, i, i+1)
					l.remove(seq)
				case !ok && !out:
					want = slices.Insert(want, i, seq)
					l.insert(seq)
				}
			}
			from := rapid.Uint64Range(0, 8000).Draw(rt, "from")
			i, _ := slices.BinarySearch(want, from)
			if got := slices.Collect(l.from(from)); !slices.Equal(got, want[i:]) {
				rt.Fatalf("%d from %d on, should be %d", len(got), from, len(want)-i)
			}
		}
	})
}

// TestDepartureLooksAtOwnJobs has a site with one waiting job leave for good beside one
// that has many: the work is its own.
func TestDepartureLooksAtOwnJobs(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	for range 500 {
		w.must("a", &Submit{Jobs: []JobSpec{w.job("a", 1)}})
	}
	w.must("b", &Submit{Jobs: []JobSpec{w.job("b", 1)}})
	w.must("b", &Forget{Site: "b"})
	if n := w.s.Steps().Used; n >= 500 || w.s.byName["b"].waiting > 0 {
		t.Fatalf("it took %d steps", n)
	}
}
