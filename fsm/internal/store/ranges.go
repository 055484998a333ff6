package store

import "slices"

// NumRange is a set of job numbers as sorted, disjoint, non-adjacent ranges. It is persistent: a change
// that touches a range makes a new slice, so a snapshot may keep the old one.
type NumRange []Span

// Span is the range From…To, both included.
type Span struct{ From, To uint64 }

// Has reports whether n is in the set.
func (r NumRange) Has(n uint64) bool {
	i, ok := r.find(n)
	return ok || i > 0 && r[i-1].To >= n
}

// find returns the first span with From ≥ n, and whether it starts at n.
func (r NumRange) find(n uint64) (int, bool) {
	return slices.BinarySearchFunc(r, n, func(s Span, n uint64) int {
		switch {
		case s.From < n:
			return -1
		case s.From > n:
			return 1
		}
		return 0
	})
}

// With returns the set together with all of nums, which it sorts. It walks both once, however many there
// are.
func (r NumRange) With(nums []uint64) NumRange {
	slices.Sort(nums)
	out := make(NumRange, 0, len(r)+len(nums))
	for len(r)+len(nums) > 0 {
		var next Span
		if len(nums) == 0 || len(r) > 0 && r[0].From <= nums[0] {
			next, r = r[0], r[1:]
		} else {
			next, nums = Span{nums[0], nums[0]}, nums[1:]
		}
		if n := len(out); n > 0 && next.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, next.To)
		} else {
			out = append(out, next)
		}
	}
	return out
}

// From returns the part of the set that is ≥ n.
func (r NumRange) From(n uint64) NumRange {
	for len(r) > 0 && r[0].To < n {
		r = r[1:]
	}
	if len(r) > 0 && r[0].From < n {
		r = slices.Clone(r)
		r[0].From = n
	}
	return r
}
