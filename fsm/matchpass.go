package fsm

import "slices"

// What a pass over the machines records: see State.match.

// putAside keeps a machine from being drawn again in this pass.
//
// REQUIRES: m is offered: one that is not may be forgotten before the pass ends.
func (s *matching) putAside(m *machine) {
	if !m.tried {
		m.tried = true
		s.tried = append(s.tried, m)
	}
}

// pruneTried drops machines that were tried and are no longer offered, once there are many.
func (s *matching) pruneTried() {
	if len(s.tried) <= s.triedMost {
		return
	}
	s.tried = slices.DeleteFunc(s.tried, func(m *machine) bool {
		gone := !m.tried // or seen already
		m.tried = false
		return gone
	})
	for _, m := range s.tried {
		m.tried = true
	}
	s.triedMost = 2*len(s.tried) + 1000
}

// endPass begins the next pass, and reports whether it has anything to do, namely what came while this one
// was cut. If not, the match is over.
func (s *matching) endPass() (again bool) {
	s.noteMissed()
	for _, m := range s.tried {
		if !m.tried {
			continue
		}
		s.steps.used += stepReset
		m.tried = false
		again = again || !m.resting
		s.weigh(m)
	}
	for _, c := range s.fresh {
		c.fresh = notFresh
	}
	s.fresh, s.late = s.late, s.fresh[:0]
	for _, c := range s.fresh {
		c.fresh = isFresh
	}
	s.tried, s.retry = s.tried[:0], 0
	s.pass++
	return again || len(s.fresh) > 0
}

// noteMissed marks the sites that were full, so that their machines were not tried with fresh classes: all
// these machines count as awake until a pass reaches them.
func (s *matching) noteMissed() {
	if len(s.fresh) == 0 && s.missed == 0 {
		return
	}
	s.steps.used += uint64(len(s.sites)) * stepLook
	for _, x := range s.sites {
		if x.state == Alive {
			s.setMissed(x, s.isFull(x) && (x.missed || len(s.fresh) > 0))
		}
	}
}

func (s *matching) setMissed(x *site, missed bool) {
	if x.missed == missed {
		return
	}
	if x.missed = missed; missed {
		s.missed++
	} else {
		s.missed--
	}
	s.weighTotals(x)
}

// freshness says whether the resting machines have been tried with a class.
type freshness uint8

const (
	notFresh      freshness = iota // they have been, or nothing of it waits
	isFresh                        // it is in State.fresh: this pass tries them with it
	isLate                         // it is in State.late: the next pass does
	lastFreshness = isLate
)

// setFresh moves a class to another list.
func (s *matching) setFresh(c *class, to freshness) {
	if c.fresh != notFresh {
		list := s.freshList(c.fresh)
		last := len(*list) - 1
		o := (*list)[last]
		(*list)[c.freshAt], o.freshAt = o, c.freshAt
		*list = (*list)[:last]
	}
	if c.fresh = to; to != notFresh {
		list := s.freshList(to)
		c.freshAt = len(*list)
		*list = append(*list, c)
	}
}

func (s *matching) freshList(f freshness) *[]*class {
	if f == isLate {
		return &s.late
	}
	return &s.fresh
}
