package fsm

import "slices"

// Bounds of the search for reservations.
const (
	reserveEveryMs = 1000 // log time between searches
	reserveAtOnce  = 16   // reservations made in one search
)

// reservation holds a machine for a job whose tasks found no room for long, so
// that narrower tasks cannot starve it. It ends with the job's next assignment.
type reservation struct {
	seq     uint64
	machine *machine
}

// reserve gives the longest starving heads one machine each. It runs after
// matching, so a head that still waits fits no free machine; while a new epoch
// holds nothing is matched, and waiting is no sign of a lack of room.
func (s *State) reserve() {
	if s.holds() { // also what had begun before the epoch
		s.search = nil
	}
	if s.search == nil {
		if s.params.ReserveAfterMs == 0 || s.present == 0 || s.time < s.nextReserve || s.holds() {
			return
		}
		s.nextReserve = s.time + s.bounds.reserveEveryMs
		s.search = &search{judged: map[*class]judgement{}}
	}
	if s.judge() && s.hold() {
		s.search = nil
	}
}

// hold makes the reservations of a search whose judgements are complete; false: more
// heads are left.
func (s *State) hold() bool {
	h := s.search
	for _, l := range s.starving() {
		if h.made >= s.bounds.reserveAtOnce || len(s.reservations) >= (s.offeredMachines()+1)/2 {
			return true
		}
		if h.judged[l.class] != servable || h.isNone(l.seq) {
			continue
		}
		if s.steps.spent() {
			return false
		}
		m := s.soonest(l)
		if m == nil { // what no machine can take now must not keep others from theirs
			if h.addNone(l.seq); !s.jobs.get(l.seq).hasBars() {
				h.judged[l.class] = crowded
			}
			continue
		}
		s.reservations = append(s.reservations, reservation{l.seq, m})
		m.held, s.held[l.seq] = l.seq, m
		s.rouse(m) // it may fit nothing else now, or the job at once
		h.made++
	}
	return true
}

// starving returns the lanes to reserve for: sites by whose turn it is, within
// a site its lanes in order, those that wait too long. A task behind one that does
// not starve is late by policy, and a machine held for it would let it jump the
// queue, unless it needs more than each such task before it: then it is late by its
// width, for what frees suffices for them first. Lanes that no machine could ever
// serve are passed over.
func (s *State) starving() []*lane {
	var out []*lane
	var first []Resources // of sites before: what their first heads need, if they do not starve
	for _, lanes := range s.byTurn() {
		young := first
		for i, l := range lanes {
			starves := l.queuedMs+s.params.ReserveAfterMs <= s.time
			switch {
			case !starves:
				if young = withNeed(young, l.class.need); i == 0 {
					first = young
				}
			case !s.isHeld(l.seq) && !slices.ContainsFunc(young, l.class.need.fits):
				out = append(out, l)
			}
		}
	}
	return out
}

// withNeed returns needs and one more, without those that are within another.
func withNeed(needs []Resources, need Resources) []Resources {
	if slices.ContainsFunc(needs, need.fits) {
		return needs
	}
	out := []Resources{need}
	for _, n := range needs {
		if !n.fits(need) {
			out = append(out, n)
		}
	}
	return out
}

// byTurn returns each present site's lanes that some machine could serve, in the
// order in which they are to be served.
func (s *State) byTurn() [][]*lane {
	var out [][]*lane
	for _, x := range s.sites {
		var lanes []*lane
		for _, l := range x.lanes {
			if s.search.judged[l.class] >= crowded {
				lanes = append(lanes, l)
			}
		}
		if len(lanes) > 0 && x.present() {
			out = append(out, inTurn(lanes))
		}
	}
	slices.SortFunc(out, func(a, b []*lane) int {
		if s.before(a[0], b[0]) {
			return -1
		}
		return 1
	})
	return out
}

func (s *State) isHeld(seq uint64) bool { return s.held[seq] != nil }

func (s *State) offeredMachines() int {
	n := 0
	for _, x := range s.sites {
		if x.state == Alive {
			for _, m := range x.machines {
				if m.offered {
					n++
				}
			}
		}
	}
	return n
}

// soonest returns the machine where a lane's head will likely fit first: of those
// that would have room for it if the federation's tasks ended, the one with the least
// in use, then the first by site and name. What a site's own users have taken no hold
// can free.
func (s *State) soonest(l *lane) *machine {
	j := s.jobs.get(l.seq)
	var best *machine
	for _, x := range s.order {
		if x.state != Alive || !l.class.need.fits(x.widest) || !l.class.allows(x.name) || j.isBarred(x) {
			continue
		}
		for _, m := range x.machines {
			if !m.offered {
				continue
			}
			if s.steps.used += stepLook; m.held == 0 && l.class.fits(m, m.exposed) &&
				(best == nil || m.used.MilliCPU < best.used.MilliCPU) {
				best = m
			}
		}
	}
	return best
}

// unhold ends a job's reservation, if it has one.
func (s *State) unhold(seq uint64) {
	if s.held[seq] != nil {
		s.unholdAll(func(r reservation) bool { return r.seq == seq })
	}
}

// unholdAll ends all reservations of a kind, in one walk.
func (s *State) unholdAll(which func(reservation) bool) {
	s.reservations = slices.DeleteFunc(s.reservations, func(r reservation) bool {
		if !which(r) {
			return false
		}
		delete(s.held, r.seq)
		if r.machine.held = 0; r.machine.offered {
			s.rouse(r.machine)
		}
		return true
	})
}

// unholdIdle ends the reservation of a job with nothing left to wait.
func (s *State) unholdIdle(seq uint64, j *job) {
	if j.waiting() == 0 {
		s.unhold(seq)
	}
}

// checkHolds ends the reservations of a site's machines that can no longer
// serve them, be it that its own users have taken the room: the next search looks
// elsewhere.
func (s *State) checkHolds(x *site) {
	s.unholdAll(func(r reservation) bool {
		m := r.machine
		return m.site == x && (x.state != Alive || !m.offered || !s.jobs.get(r.seq).class.fits(m, m.exposed))
	})
}

// couldRun reports whether one of the site's machines, if it were empty, fits
// such a task.
func (x *site) couldRun(h *shape) bool {
	if !h.need.fits(x.most) || !h.allows(x.name) { // most of what fits nowhere needs no look at the machines
		return false
	}
	return slices.ContainsFunc(x.machines, func(m *machine) bool { return m.offered && h.fits(m, m.whole) })
}
