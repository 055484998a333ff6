package fsm

// liveList lists a site's live attempts by their last change, oldest first, through attempt.prev and
// attempt.next. So what has changed since an entry is its end, and a broker need not look at everything
// that it runs to find what is new.
//
// It is derived: after Restore everything counts as changed by the restored entry.
type liveList struct {
	first, last uint64 // slot + 1; 0 = empty
	n           int
	at          uint64 // slot + 1 of the next one that the first chore gathers, if it is for this site; 0 = none
}

// enlist adds an attempt as the one that changed last.
func (s *attemptTable) enlist(x *site, slot uint64) {
	a := s.attempts.Mut(slot, s.epoch)
	a.prev, a.next, a.changed = x.live.last, 0, s.index
	if a.prev != 0 {
		s.attempts.Mut(a.prev-1, s.epoch).next = slot + 1
	} else {
		x.live.first = slot + 1
	}
	x.live.last = slot + 1
	x.live.n++
	x.changed = s.index
}

// delist removes an attempt.
func (s *attemptTable) delist(x *site, slot uint64) {
	a := s.attempts.Get(slot)
	prev, next := a.prev, a.next
	if x.live.at == slot+1 {
		x.live.at = next
	}
	if prev != 0 {
		s.attempts.Mut(prev-1, s.epoch).next = next
	} else {
		x.live.first = next
	}
	if next != 0 {
		s.attempts.Mut(next-1, s.epoch).prev = prev
	} else {
		x.live.last = prev
	}
	x.live.n--
	x.changed = s.index
}

// touch records that a site must look at an attempt again.
func (s *attemptTable) touch(slot uint64) {
	x := s.sites[s.attempts.Get(slot).site]
	if x.live.last == slot+1 {
		s.attempts.Mut(slot, s.epoch).changed = s.index
		x.changed = s.index
		return
	}
	s.delist(x, slot)
	s.enlist(x, slot)
}

// slotsOf returns a site's attempts that changed after an entry, the last change first.
func (s *attemptTable) slotsOf(x *site, after uint64) []uint64 {
	var out []uint64
	if after == 0 {
		out = make([]uint64, 0, x.live.n)
	}
	for at := x.live.last; at != 0; {
		a := s.attempts.Get(at - 1)
		if a.changed <= after {
			break
		}
		out = append(out, at-1)
		at = a.prev
	}
	return out
}
