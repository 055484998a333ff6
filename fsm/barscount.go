package fsm

import (
	"cmp"
	"slices"
)

// barCount counts the waiting jobs that are barred from one site's current offer.
type barCount struct {
	site   int32
	offers uint64 // the site's count; a barCount with another count is void
	jobs   int    // Invariant: > 0
}

// barCounts counts the barred jobs of a lane or class by site, in the order of the sites' ids. It shows
// without a search whether a site declined everything that waits. It is derived from waiting jobs, their
// bars and their owners' presence alone.
type barCounts []barCount

// find returns the place of a site, which must not be among the first from.
func (c barCounts) find(from int, site int32) (int, bool) {
	// A caller that looks up many sites in order usually finds the next one here.
	if from < len(c) && c[from].site >= site {
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

// add adds counts, by site in order; they may be negative and must not be void. Sites enter and leave the
// list all at once: one by one, 9000 sites that had declined a job took 30 ms when it was cancelled.
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

// merge inserts sites, in order, that are not in the list.
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

// countJob counts n more waiting jobs of a lane, all with the same bars; n may be negative.
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

// countLane adds a whole lane to its class's counts (sign 1) or subtracts it (sign −1).
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

// blocked returns the sites from which everything that waits of a class is barred, except those in own:
// their machines rest although they fit.
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
