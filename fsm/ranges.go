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

// with returns the set and all of nums, which it sorts: one walk over both, however
// many they are.
func (r numRange) with(nums []uint64) numRange {
	slices.Sort(nums)
	out := make(numRange, 0, len(r)+len(nums))
	for len(r)+len(nums) > 0 {
		var next span
		if len(nums) == 0 || len(r) > 0 && r[0].from <= nums[0] {
			next, r = r[0], r[1:]
		} else {
			next, nums = span{nums[0], nums[0]}, nums[1:]
		}
		if n := len(out); n > 0 && next.from <= out[n-1].to+1 {
			out[n-1].to = max(out[n-1].to, next.to)
		} else {
			out = append(out, next)
		}
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
