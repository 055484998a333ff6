package sched

import (
	"cmp"
	"slices"
	"sort"
)

// Slot is cores of a virtual queue that become free at one time.
type Slot struct {
	At    int64 // quanta since genesis; may lie in the past
	Cores int64 // Invariant: > 0
}

// slots are the cores of one virtual queue, sorted by time, each time once.
type slots []Slot

// add enters cores that become free at a time.
func (f *slots) add(at, cores int64) {
	if n := len(*f); n == 0 || (*f)[n-1].At < at {
		*f = append(*f, Slot{at, cores})
		return
	}
	i := f.search(at)
	if i < len(*f) && (*f)[i].At == at {
		(*f)[i].Cores += cores
		return
	}
	*f = slices.Insert(*f, i, Slot{at, cores})
}

// search returns the place of the first time that is not before at; it is quick near
// the end, where what starts is entered.
func (f *slots) search(at int64) int {
	s, high := *f, len(*f)
	low, step := high-1, 1
	for low > 0 && s[low].At >= at {
		low, high, step = max(0, low-step), low, 2*step
	}
	return low + sort.Search(high-low, func(i int) bool { return s[low+i].At >= at })
}

// clip makes cores that were free before a time free at that time.
func (f *slots) clip(at int64) {
	n, idle := *f, int64(0)
	for len(n) > 0 && n[0].At <= at {
		idle += n[0].Cores
		n = n[1:]
	}
	if idle == 0 {
		return
	}
	first := len(*f) - len(n) - 1
	(*f)[first] = Slot{at, idle}
	*f = slices.Delete(*f, 0, first)
}

// cap makes cores that free later than a time free at that time.
func (f *slots) cap(at int64) {
	late := int64(0)
	for last := len(*f) - 1; last >= 0 && (*f)[last].At > at; last-- {
		late += (*f)[last].Cores
		*f = (*f)[:last]
	}
	if late > 0 {
		f.add(at, late)
	}
}

// coarsen bounds how many different times are kept: cores that are free by now
// count as free now; then, if need be, times are rounded up to a power of two
// that leaves at most half of the limit.
func (f *slots) coarsen(now int64, limit int) {
	if len(*f) <= limit {
		return
	}
	f.clip(now)
	for step := int64(1); len(*f) > limit; step *= 2 {
		for distinct(*f, step) > limit/2 {
			step *= 2
		}
		f.round(step)
	}
}

// distinct returns how many times are left if they are rounded up to multiples of step.
func distinct(f slots, step int64) int {
	n, last := 0, int64(-1)
	for _, s := range f {
		if at := roundUp(s.At, step); at != last {
			n, last = n+1, at
		}
	}
	return n
}

func (f *slots) round(step int64) {
	out := (*f)[:0]
	for _, s := range *f {
		s.At = roundUp(s.At, step)
		if last := len(out) - 1; last >= 0 && out[last].At == s.At {
			out[last].Cores += s.Cores
			continue
		}
		out = append(out, s)
	}
	*f = out
}

func roundUp(at, step int64) int64 { return (at + step - 1) / step * step }

// capacity returns how many cores there are.
func (f slots) capacity() (n int64) {
	for _, s := range f {
		n += s.Cores
	}
	return n
}

// startBy starts n equal units of length d one after another, each on the core
// that frees first, as long as that is by limit. It returns how many started and
// the sum of their starts.
func (f *slots) startBy(limit, n, d int64) (started int64, sum Int128) {
	moved := 0
	for ; moved < len(*f) && (*f)[moved].At <= limit; moved++ {
		k := roundsBy((*f)[moved].At, limit, d)
		if k > 1 && k > (n-started)/(*f)[moved].Cores || (*f)[moved].Cores > n-started { // more would than there are
			return n, f.drain(n, d)
		}
		started += (*f)[moved].Cores * k
	}
	for i := range moved {
		s := &(*f)[i]
		k := roundsBy(s.At, limit, d)
		sum = sum.Add(startsOf(*s, k, d))
		s.At += k * d
	}
	f.mergePrefix(moved)
	return started, sum
}

// roundsBy returns how many starts, d apart from at on, are by a time.
//
// REQUIRES: at ≤ by.
func roundsBy(at, by, d int64) int64 {
	if by-at < d { // without a division
		return 1
	}
	return (by-at)/d + 1
}

// startsOf returns the sum of k starts on each of a slot's cores, d apart.
func startsOf(s Slot, k, d int64) Int128 {
	sum := Mul64(s.At, k)
	if k > 1 {
		sum = sum.Add(Mul64(k, k-1).Half().MulInt64(d))
	}
	return sum.MulInt64(s.Cores)
}

// mergePrefix restores the order after the first n entries moved to later times.
func (f *slots) mergePrefix(n int) {
	if n == 0 {
		return
	}
	var few [16]Slot
	moved := append(few[:0], (*f)[:n]...)
	if n <= 4 {
		*f = (*f)[n:]
		for _, s := range moved {
			f.add(s.At, s.Cores)
		}
		return
	}
	sortSlots(moved)
	rest, out := (*f)[n:], (*f)[:0]
	for len(moved) > 0 || len(rest) > 0 {
		var s Slot
		if len(rest) == 0 || len(moved) > 0 && moved[0].At <= rest[0].At {
			s, moved = moved[0], moved[1:]
		} else {
			s, rest = rest[0], rest[1:]
		}
		if last := len(out) - 1; last >= 0 && out[last].At == s.At {
			out[last].Cores += s.Cores
			continue
		}
		out = append(out, s)
	}
	*f = out
}

func sortSlots(s []Slot) {
	slices.SortFunc(s, func(a, b Slot) int { return cmp.Compare(a.At, b.At) })
}
