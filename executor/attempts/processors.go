package attempts

import "slices"

// processors gives CPUs out to attempts: whole ones first to those with the least on
// them, so that no two attempts share one while another has nothing to do.
type processors struct {
	all []int // in the order in which they are given out
	// load is the milli-cores asked for by the attempts of each CPU, of those of earlier
	// lives of the broker too, which may be none of all.
	load map[int]int64
}

// core is a whole CPU, in milli-cores.
const core = 1000

// choose returns the CPUs for an attempt: as many as the milli-cores that it asked
// for, rounded up, or all. What is less than a core shares one with others of its kind
// as long as that has room.
func (p *processors) choose(milli int64) []int {
	whole, rest := int(milli/core), milli%core
	free := slices.Clone(p.all)
	slices.SortStableFunc(free, func(a, b int) int { return int(p.load[a] - p.load[b]) })
	if whole >= len(free) {
		return free
	}
	chosen := slices.Clone(free[:whole])
	if rest > 0 {
		chosen = append(chosen, p.fullest(free[whole:], rest))
	}
	return chosen
}

// fullest returns the CPU with the least room that still has enough for a part of a
// core, or the one with the most, the first.
func (p *processors) fullest(free []int, part int64) int {
	best := free[0]
	for _, cpu := range free {
		if p.load[cpu] > p.load[best] && p.load[cpu]+part <= core {
			best = cpu
		}
	}
	return best
}

// add enters what an attempt asked for, in equal parts, or whole cores first as choose
// gives them out.
func (p *processors) add(h Hold, sign int64) {
	left := h.MilliCPU
	for i, cpu := range h.CPUs {
		part := min(left, core)
		if more := int64(len(h.CPUs)-i) * core; left > more { // it got all there are
			part = left / int64(len(h.CPUs)-i)
		}
		left -= part
		if p.load[cpu] += sign * part; p.load[cpu] == 0 {
			delete(p.load, cpu)
		}
	}
}
