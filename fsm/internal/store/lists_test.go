package store

import (
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFenwickAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var f Fenwick
		f.Reset(rapid.IntRange(0, 50).Draw(t, "before"))
		f.Reset(n)
		weights := make([]int64, n)
		for range rapid.IntRange(0, 80).Draw(t, "sets") {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			weights[i] = rapid.Int64Range(0, 9).Draw(t, "w")
			f.Set(i, weights[i])
		}
		total := int64(0)
		for i, w := range weights {
			for r := range w {
				if pos, rest := f.Find(total + r); pos != i || rest != r {
					t.Fatalf("find(%d) = %d, %d; want %d, %d", total+r, pos, rest, i, r)
				}
			}
			total += w
		}
		if f.Total() != total {
			t.Fatalf("total %d, want %d", f.Total(), total)
		}
	})
}

func TestNumRangeAgainstSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r NumRange
		set := map[uint64]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			n := rapid.Uint64Range(1, 30).Draw(t, "n")
			old := slices.Clone(r)
			kept := r
			if rapid.IntRange(0, 9).Draw(t, "op") == 0 {
				r = r.From(n)
				for k := range set {
					if k < n {
						delete(set, k)
					}
				}
			} else {
				nums := append(rapid.SliceOfN(rapid.Uint64Range(1, 30), 0, 5).Draw(t, "more"), n)
				for _, k := range nums {
					set[k] = true
				}
				r = r.With(nums)
			}
			if !slices.Equal(kept, old) {
				t.Fatal("a change wrote into a slice that a snapshot may hold")
			}
			for k := uint64(0); k < 33; k++ {
				if r.Has(k) != set[k] {
					t.Fatalf("has(%d) = %v in %v", k, r.Has(k), r)
				}
			}
			for i := 1; i < len(r); i++ {
				if r[i].From <= r[i-1].To+1 {
					t.Fatalf("%v is not joined", r)
				}
			}
		}
	})
}

func TestPagesAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pages[int]
		m := map[uint64]int{}
		epoch := uint64(0)
		type frozen struct {
			p Pages[int]
			m map[uint64]int
		}
		var old []frozen
		copyOf := func() map[uint64]int {
			c := map[uint64]int{}
			for k, v := range m {
				c[k] = v
			}
			return c
		}
		equal := func(p *Pages[int], m map[uint64]int) {
			n, last := 0, int64(-1)
			for k, v := range p.All() {
				if m[k] != *v || int64(k) <= last {
					t.Fatalf("key %d holds %d, want %d", k, *v, m[k])
				}
				n, last = n+1, int64(k)
			}
			if n != len(m) || p.n != n {
				t.Fatalf("%d records, %d counted, want %d", n, p.n, len(m))
			}
			at := rapid.Uint64Range(0, 900).Draw(t, "at")
			prev := at
			for k := range p.Below(at) {
				if k >= prev {
					t.Fatalf("below(%d) gave %d after %d", at, k, prev)
				}
				prev = k
				n--
			}
			for k := range m {
				if k >= at {
					n--
				}
			}
			if n != 0 {
				t.Fatalf("below(%d) missed %d", at, n)
			}
		}
		for i := range rapid.IntRange(0, 80).Draw(t, "steps") {
			k := rapid.Uint64Range(0, 800).Draw(t, "key")
			switch _, ok := m[k]; rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				if ok {
					*p.Mut(k, epoch) = i
				} else {
					*p.Put(k, epoch) = i
				}
				m[k] = i
			case 2:
				if ok {
					p.Drop(k, epoch)
					delete(m, k)
				}
			case 3:
				old = append(old, frozen{p.Frozen(), copyOf()})
				epoch++
			}
			want, ok := m[k]
			if got := p.Get(k); (got != nil) != ok || ok && *got != want {
				t.Fatalf("get(%d), want %d %v", k, want, ok)
			}
		}
		equal(&p, m)
		for i := range old {
			equal(&old[i].p, old[i].m)
		}
	})
}

// TestSortedListAgainstOnePiece compares the list with one in a single piece, and checks that a copy
// does not change with it.
func TestSortedListAgainstOnePiece(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l, copied Sorted[uint64]
		var want, kept []uint64
		for range rapid.IntRange(0, 10).Draw(rt, "spans") {
			first := rapid.Uint64Range(0, 5000).Draw(rt, "first")
			step := rapid.Uint64Range(1, 5).Draw(rt, "step")
			out, down := rapid.Bool().Draw(rt, "out"), rapid.Bool().Draw(rt, "down")
			for k := range uint64(1500) {
				seq := first + k*step
				if down {
					seq = first + (1500-k)*step
				}
				i, ok := slices.BinarySearch(want, seq)
				at := l.Search(func(o *uint64) bool { return *o >= seq })
				if got := l.Get(at); l.Rank(at) != i || (got == nil) != (i == len(want)) ||
					got != nil && *got != want[i] {
					rt.Fatalf("%d is at %v, should be at %d", seq, at, i)
				}
				switch {
				case ok && out:
					want = slices.Delete(want, i, i+1)
					l.Remove(at)
				case !ok && !out:
					want = slices.Insert(want, i, seq)
					l.Insert(at, seq)
				}
			}
			if rapid.Bool().Draw(rt, "copy") {
				copied, kept = l.Clone(), slices.Clone(want)
			}
		}
		if got := elements(copied.All()); !slices.Equal(got, kept) {
			rt.Fatal("a copy has changed")
		}
		from := rapid.Uint64Range(0, 8000).Draw(rt, "from")
		i, _ := slices.BinarySearch(want, from)
		got := elements(l.From(l.Search(func(o *uint64) bool { return *o >= from })))
		if !slices.Equal(got, want[i:]) || l.Len() != len(want) {
			rt.Fatalf("%d from %d on, should be %d of %d", len(got), from, len(want)-i, len(want))
		}
		n, step := rapid.IntRange(0, len(want)).Draw(rt, "n"), rapid.IntRange(1, 700).Draw(rt, "each")
		var some []uint64
		for k := 0; k < n; k += step {
			some = append(some, want[k])
		}
		if got := elements(l.Sample(n, step)); !slices.Equal(got, some) {
			rt.Fatalf("each %d of %d are %v, should be %v", step, n, got, some)
		}
		if first, last := l.First(), l.Final(); len(want) == 0 && (first != nil || last != nil) ||
			len(want) > 0 && (*first != want[0] || *last != want[len(want)-1]) {
			rt.Fatal("first or last")
		}
	})
}

// TestStackAgainstASlice compares the stack with a slice.
func TestStackAgainstASlice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Stack
		var want []uint64
		for range rapid.IntRange(0, 20).Draw(rt, "turns") {
			for range rapid.IntRange(0, 700).Draw(rt, "in") {
				s.Push(uint64(len(want)))
				want = append(want, uint64(len(want)))
			}
			for range rapid.IntRange(0, 1200).Draw(rt, "out") {
				v, ok := s.Pop()
				if ok != (len(want) > 0) || ok && v != want[len(want)-1] {
					rt.Fatalf("%d, %v of %d", v, ok, len(want))
				}
				want = slices.Delete(want, max(0, len(want)-1), len(want))
			}
			if s.n != len(want) || len(s.pieces) > s.n/MostPiece+2 {
				rt.Fatalf("%d pieces for %d, should be %d", len(s.pieces), s.n, len(want))
			}
		}
	})
}

func elements[T any](all iter.Seq[*T]) (out []T) {
	for v := range all {
		out = append(out, *v)
	}
	return out
}
