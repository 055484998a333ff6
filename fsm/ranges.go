package fsm

import "slices"

// numRange is a set of job numbers as sorted, disjoint, non-adjacent ranges.
// It is persistent: changes that touch a range make a new slice, so a
// snapshot may keep the old one.
type numRange []span

// span is [from, to].
type span struct{ from, to uint64 }

// has reports whether n is in the set.
func (r numRange) has(n uint64) bool {
	i, ok := r.find(n)
	return ok || i > 0 && r[i-1].to >= n
}

// find returns the first span with from ≥ n, and whether it starts at n.
func (r numRange) find(n uint64) (int, bool) {
	return slices.BinarySearchFunc(r, n, func(s span, n uint64) int {
		switch {
		case s.from < n:
			return -1
		case s.from > n:
			return 1
		}
		return 0
	})
}

// with returns the set and n.
func (r numRange) with(n uint64) numRange {
	if r.has(n) {
		return r
	}
	i, _ := r.find(n)
	left := i > 0 && r[i-1].to+1 == n
	right := i < len(r) && r[i].from == n+1
	out := slices.Clone(r)
	switch {
	case left && right:
		out[i-1].to = out[i].to
		return slices.Delete(out, i, i+1)
	case left:
		out[i-1].to = n
	case right:
		out[i].from = n
	default:
		return slices.Insert(out, i, span{n, n})
	}
	return out
}

// from returns the part of the set that is ≥ n.
func (r numRange) from(n uint64) numRange {
	for len(r) > 0 && r[0].to < n {
		r = r[1:]
	}
	if len(r) > 0 && r[0].from < n {
		r = slices.Clone(r)
		r[0].from = n
	}
	return r
}
