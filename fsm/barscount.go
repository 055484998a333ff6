package fsm

import (
	"cmp"
	"slices"
)

// barCount is the waiting jobs that are barred from one site's standing offer.
type barCount struct {
	site   int32
	offers uint64 // the site's count; a barCount of another count is void
	jobs   int    // Invariant: > 0
}

// barCounts counts the barred jobs of a lane or class by site, in the order of the
// sites' ids. It tells without a search whether a site was declined by all that waits.
// It is derived from waiting jobs, their bars and their owners' presence alone.
type barCounts []barCount

// find returns the place of a site, which is none of the first from.
func (c barCounts) find(from int, site int32) (int, bool) {
	if from < len(c) && c[from].site >= site { // who asks for many, in order, as a rule finds the next one
		return from, c[from].site == site
	}
	i, ok := slices.BinarySearchFunc(c[from:], site, func(b barCount, id int32) int { return cmp.Compare(b.site, id) })
	return from + i, ok
}

// of returns the number of jobs that are barred from a site.
func (c barCounts) of(x *site) int {
	if i, ok := c.find(0, x.id); ok && c[i].offers == x.offers {
		return c[i].jobs
	}
	return 0
}

// add counts more barred jobs, of sites in order; what is added may be negative, and is not
// void. Sites come into the list, and leave it, all at once: one by one 9000 that had
// declined a job took 30 ms when that was cancelled.
func (c *barCounts) add(more []barCount) {
	var others []barCount
	none, i, ok := false, 0, false
	for _, b := range more {
		i, ok = c.find(i, b.site)
		switch {
		case !ok:
			others = append(others, b)
			continue
		case (*c)[i].offers != b.offers:
			(*c)[i] = b
		default:
			(*c)[i].jobs += b.jobs
		}
		none = none || (*c)[i].jobs == 0
	}
	if none {
		*c = slices.DeleteFunc(*c, func(b barCount) bool { return b.jobs == 0 })
	}
	c.merge(others)
}

// merge enters sites, in order, that are not in the list.
func (c *barCounts) merge(others []barCount) {
	i, to := len(*c)-1, len(*c)+len(others)-1
	for *c = append(*c, others...); len(others) > 0; to-- {
		last := len(others) - 1
		if i >= 0 && (*c)[i].site > others[last].site {
			(*c)[to] = (*c)[i]
			i--
		} else {
			(*c)[to] = others[last]
			others = others[:last]
		}
	}
}

// countJob counts n more waiting jobs of a lane, all with the same bars; n may be
// negative.
func (s *matching) countJob(l *lane, bars []bar, n int) {
	l.jobs += n
	if l.owner.counted {
		l.class.jobs += n
	}
	var more []barCount
	for _, b := range bars {
		if s.sites[b.site].offers == b.offers {
			more = append(more, barCount{b.site, b.offers, n})
		}
	}
	s.countBarred(l, more)
}

// countBarred counts more waiting jobs of a lane as barred from sites.
func (s *matching) countBarred(l *lane, more []barCount) {
	s.steps.used += uint64(len(more)) * stepLook
	l.barredFrom.add(more)
	if l.owner.counted {
		l.class.barredFrom.add(more)
	}
}

// countLane counts a whole lane in its class, or no longer: sign is 1 or −1.
func (s *matching) countLane(l *lane, sign int) {
	l.class.jobs += sign * l.jobs
	var more []barCount
	for _, b := range l.barredFrom {
		if s.sites[b.site].offers == b.offers {
			more = append(more, barCount{b.site, b.offers, sign * b.jobs})
		}
	}
	s.steps.used += uint64(len(more)) * stepLook
	l.class.barredFrom.add(more)
}

// blocked returns the sites from which all that waits of a class is barred, but for
// those in own: their machines rest though they fit.
func (s *matching) blocked(c *class, own []bar) (out []*site) {
	if c.jobs == 0 {
		return nil
	}
	bars := barWalk(own)
	for _, b := range c.barredFrom {
		x := s.sites[b.site]
		if b.offers != x.offers {
			continue
		}
		s.steps.used += stepLook
		if b.jobs == c.jobs && !bars.isBarred(x) {
			out = append(out, x)
		}
	}
	return out
}
