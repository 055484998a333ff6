package store

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type entry struct{ key, at int }

// TestHeapAgainstSortedList adds, changes and removes entries that know their places.
func TestHeapAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inside []*entry
		h := Heap[*entry]{
			Before: func(a, b **entry) bool { return (*a).key < (*b).key },
			Moved:  func(e *entry, to int) { e.at = to },
		}
		keys := rapid.Permutation(slices.Collect(upTo(60))).Draw(t, "keys") // no two are equal
		for _, k := range keys {
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op < 2 || len(inside) == 0:
				e := &entry{key: k}
				h.Push(e)
				inside = append(inside, e)
			case op == 2:
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "i")
				e := inside[i]
				inside = slices.Delete(inside, i, i+1)
				if got := h.Remove(e.at); got != e || e.at != -1 {
					t.Fatalf("%+v came out for %+v", got, e)
				}
			default:
				e := inside[rapid.IntRange(0, len(inside)-1).Draw(t, "i")]
				e.key = k
				h.Fix(e.at)
			}
			for i := range h.Len() {
				if e := *h.At(i); e.at != i {
					t.Fatalf("entry at %d thinks it is at %d", i, e.at)
				}
			}
		}
		slices.SortFunc(inside, func(a, b *entry) int { return cmp.Compare(a.key, b.key) })
		for _, want := range inside {
			if first := *h.First(); first != want {
				t.Fatalf("first is %+v, should be %+v", first, want)
			}
			h.Pop()
		}
		if h.Len() > 0 {
			t.Fatalf("%d entries are left", h.Len())
		}
	})
}

func upTo(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
