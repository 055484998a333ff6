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

func (c barCounts) find(site int32) (int, bool) {
	return slices.BinarySearchFunc(c, site, func(b barCount, id int32) int { return cmp.Compare(b.site, id) })
}

// of returns the number of jobs that are barred from a site.
func (c barCounts) of(x *site) int {
	if i, ok := c.find(x.id); ok && c[i].offers == x.offers {
		return c[i].jobs
	}
	return 0
}

// add counts n more jobs that are barred from a site; n may be negative.
func (c *barCounts) add(x *site, n int) {
	i, ok := c.find(x.id)
	switch {
	case !ok:
		*c = slices.Insert(*c, i, barCount{x.id, x.offers, n})
	case (*c)[i].offers != x.offers:
		(*c)[i] = barCount{x.id, x.offers, n}
	default:
		(*c)[i].jobs += n
	}
	if (*c)[i].jobs == 0 {
		*c = slices.Delete(*c, i, i+1)
	}
}

// countJob counts n more waiting jobs of a lane, all with the same bars; n may be
// negative.
func (s *matching) countJob(l *lane, bars []bar, n int) {
	l.jobs += n
	if l.owner.present() {
		l.class.jobs += n
	}
	for _, b := range bars {
		if x := s.sites[b.site]; x.offers == b.offers {
			s.countBarred(l, x, n)
		}
	}
}

// countBarred counts n more waiting jobs of a lane as barred from a site.
func (s *matching) countBarred(l *lane, x *site, n int) {
	s.steps.used += stepLook
	l.barredFrom.add(x, n)
	if l.owner.present() {
		l.class.barredFrom.add(x, n)
	}
}

// countLane counts a whole lane in its class, or no longer: sign is 1 or −1.
func (s *matching) countLane(l *lane, sign int) {
	l.class.jobs += sign * l.jobs
	for _, b := range l.barredFrom {
		if x := s.sites[b.site]; x.offers == b.offers {
			s.steps.used += stepLook
			l.class.barredFrom.add(x, sign*b.jobs)
		}
	}
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
