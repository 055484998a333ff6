package fsm

import (
	"cmp"
	"math"
)

// A chore treats its site's attempts in the order of jobs, tasks and attempts. The site's list has another
// order, and walking along it misses the processor's caches at each step. So sorting 80,000 attempts is
// itself work that is divided among entries: they are gathered into a heap, some at a time, and taken from
// it as the chore proceeds.

// gatherAtOnce is how many attempts one step of a chore gathers.
const gatherAtOnce = 256

// pending is an attempt that a chore has not treated yet.
type pending struct {
	taskKey
	attempt uint32
	slot    uint64
}

// isBefore orders attempts as chores treat them.
func (p *pending) isBefore(o *pending) bool {
	return cmp.Or(cmp.Compare(p.seq, o.seq), cmp.Compare(p.task, o.task), cmp.Compare(p.attempt, o.attempt)) < 0
}

// gather collects the attempts that the first chore is to treat. It returns false if more are left. Nothing
// is added to the site's attempts before the chore is done, since nothing is matched. Until the first one
// is treated, chore.task counts how many have been gathered, so that a replica that is restored meanwhile
// and starts over stops where the others do. Once the count reaches the number of the site's attempts,
// that replica gathers all at once.
func (s *State) gather(c *chore) (all bool) {
	x := s.sites[c.site]
	if !s.gathering {
		s.left.Clear()
		s.gathering, x.live.at = true, x.live.first
	}
	if left := x.live.n - int(c.task); c.seq == 0 && left > 0 {
		n := min(left, gatherAtOnce)
		c.task += uint32(n)
		s.steps.used += uint64(n) * stepSort
		if s.gatherSome(c, x, n); n < left {
			return false
		}
	}
	s.gatherSome(c, x, math.MaxInt)
	s.gathered = true
	return true
}

// gatherSome collects up to most attempts of a site from a chore's position on. An attempt that changes
// meanwhile moves to the end of the list and may be gathered twice.
func (s *State) gatherSome(c *chore, x *site, most int) {
	for ; most > 0 && x.live.at != 0; most-- {
		slot := x.live.at - 1
		a := s.attempts.Get(slot)
		if x.live.at = a.next; a.seq > c.seq || a.seq == c.seq && a.task >= c.task || c.seq == 0 {
			s.left.Push(pending{taskKey{a.seq, a.task}, a.attempt, slot})
		}
	}
}

// ungather drops what was gathered, because the first chore changes.
func (s *State) ungather() {
	s.left.Clear()
	s.gathering, s.gathered = false, false
}
