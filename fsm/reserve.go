package fsm

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Bounds of the search for reservations.
const (
	reserveEveryMs = 1000 // log time between searches
	reserveAtOnce  = 16   // reservations made in one search
)

// reservation holds a machine for a job whose tasks have long found no room, so that smaller tasks cannot
// starve it. It ends with the job's next assignment.
type reservation struct {
	no      uint64 // Invariant: machine.heldNo; grows with each one made, at this replica
	seq     uint64
	machine *machine
}

// hold reserves a machine for a job. When a reservation ends it is found by its number, since there may be
// half as many reservations as machines.
func (s *holding) hold(seq uint64, m *machine) {
	s.holdNo++
	m.held, m.heldNo, s.held[seq] = seq, s.holdNo, m
	m.site.heldMachines++
	s.sites[s.jobs.Get(seq).owner].heldFor++
	s.reservations.Insert(s.reservations.End(), reservation{s.holdNo, seq, m})
}

// reserve gives the longest starving heads one machine each. It runs after matching, so a head that still
// waits fits no free machine. While a new epoch holds, nothing is matched, and waiting does not mean a lack
// of room.
func (s *holding) reserve() {
	if s.holds() { // also if the search had begun before the epoch
		s.search = nil
	}
	if s.search == nil {
		if s.params.ReserveAfterMs == 0 || s.present == 0 || s.time < s.nextReserve || s.holds() {
			return
		}
		s.nextReserve = s.time + s.bounds.reserveEveryMs
		s.search = &search{judged: map[*class]judgement{}}
	}
	if (s.search.ordered || s.judge()) && s.holdSome() {
		s.search = nil
	}
}

// holdSome makes the reservations of a search whose judgements are complete. It returns false if more heads
// are left. It does at least one site, or searches for one machine.
func (s *holding) holdSome() bool {
	h := s.search
	if !h.ordered {
		h.ordered, h.turns = true, s.sitesInTurn()
	}
	most := (s.offeredMachines() + 1) / 2
	for worked := false; len(h.turns) > 0 && s.mayHold(most); worked = true {
		if worked && s.steps.spent() || !s.holdFor(s.sites[h.turns[0]], most, worked) {
			return false
		}
		h.turns = h.turns[1:]
	}
	return true
}

// mayHold reports whether the search may reserve one more machine.
func (s *holding) mayHold(most int) bool {
	return s.search.made < s.bounds.reserveAtOnce && s.reservations.Len() < most
}

// holdFor makes the reservations for those heads of a site's lanes that have waited too long. It returns
// false if more are left. A task behind one that does not starve is late because of the policy, and a
// machine held for it would let it jump the queue. The exception is a task that needs more than each such
// task before it: it is late because of its size, and the room that it waits for suffices for them first.
// Lanes that no machine could ever serve are skipped. When a site is resumed, heads that already have a
// reservation are skipped. worked says that the entry has already done something.
func (s *holding) holdFor(x *site, most int, worked bool) bool {
	h := s.search
	var young []command.Resources // needs of earlier lanes that do not starve
	for i, l := range s.hopefulLanes(x) {
		need := l.class.Need
		if l.queuedMs+s.params.ReserveAfterMs > s.time {
			if young = s.withNeed(young, need); i == 0 && len(h.first) < MaxMembers {
				h.first = s.withNeed(h.first, need)
			}
			continue
		}
		if h.judged[l.class] != servable || s.isHeld(l.seq) || h.isNone(l.seq) ||
			s.isWithin(h.first, need) || s.isWithin(young, need) {
			continue
		}
		switch {
		case !s.mayHold(most):
			return true
		case worked && s.steps.spent():
			return false
		}
		s.holdOne(l)
		worked = true
	}
	return true
}

// holdOne reserves a machine for a lane's head, or records that there is none: a head that no machine can
// take now must not keep others from theirs.
func (s *holding) holdOne(l *lane) {
	h := s.search
	m := s.soonest(l)
	if m == nil {
		if h.addNone(l.seq); !s.jobs.Get(l.seq).hasBars() {
			h.judged[l.class] = crowded
		}
		return
	}
	s.hold(l.seq, m)
	s.wakeMachine(m) // it may fit nothing else now, or fit the job at once
	h.made++
}

// isWithin reports whether a need is within another one, and counts the steps.
func (s *holding) isWithin(needs []command.Resources, need command.Resources) bool {
	s.steps.used += stepLook + uint64(len(needs))/needsAStep
	return slices.ContainsFunc(needs, need.FitsIn)
}

// withNeed returns needs with one more, without those that are within another. It changes the list, and
// counts the steps.
func (s *holding) withNeed(needs []command.Resources, need command.Resources) []command.Resources {
	if s.isWithin(needs, need) {
		return needs
	}
	return append(slices.DeleteFunc(needs, func(n command.Resources) bool { return n.FitsIn(need) }), need)
}

// hopefulLanes returns a present site's lanes that some machine could serve, in the order in which they are
// to be served.
func (s *holding) hopefulLanes(x *site) []*lane {
	if !x.present() {
		return nil
	}
	var lanes []*lane
	for _, l := range x.lanes {
		if s.search.judged[l.class] >= crowded {
			lanes = append(lanes, l)
		}
	}
	s.steps.used += uint64(len(x.lanes)+len(lanes)*stepTurn) * stepLook
	return inTurn(lanes)
}

// sitesInTurn returns the sites with lanes that some machine could serve, by whose turn it is.
func (s *holding) sitesInTurn() []int32 {
	var heads []*lane
	for _, x := range s.sites {
		if !x.present() {
			continue
		}
		var head *lane
		s.steps.used += uint64(len(x.lanes)) * stepLook
		for _, l := range x.lanes {
			if s.search.judged[l.class] >= crowded && (head == nil || compareTurns(l, head) < 0) {
				head = l
			}
		}
		if head != nil {
			heads = append(heads, head)
		}
	}
	slices.SortFunc(heads, func(a, b *lane) int {
		if s.before(a, b) {
			return -1
		}
		return 1
	})
	turns := make([]int32, len(heads))
	for i, l := range heads {
		turns[i] = l.owner.id
	}
	return turns
}

func (s *holding) isHeld(seq uint64) bool { return s.held[seq] != nil }

// offeredMachines counts the machines that sites in state Alive offer.
func (s *holding) offeredMachines() int {
	n := 0
	for _, x := range s.sites {
		if x.state == Alive {
			n += len(x.machines)
		}
	}
	s.steps.used += uint64(len(s.sites)) * stepLook
	return n
}

// soonest returns the machine where a lane's head will probably fit first: of those that would have room for
// it if the federation's tasks ended, the one with the least in use, then the first by site and name. Room
// that a site's own users have taken is not freed by a reservation.
func (s *jobTable) soonest(l *lane) *machine {
	j := s.jobs.Get(l.seq)
	var best *machine
	for _, x := range s.order {
		if x.state != Alive || !l.class.Need.FitsIn(x.widest) || !l.class.Allows(x.name) || j.isBarred(x) {
			continue
		}
		for _, m := range x.machines {
			if m.held != 0 {
				s.steps.used += stepLook
				continue
			}
			if s.fits(l.class, m, m.exposed) &&
				(best == nil || m.used.MilliCPU < best.used.MilliCPU) {
				best = m
			}
		}
	}
	return best
}

// unhold ends a job's reservation, if it has one.
func (s *holding) unhold(seq uint64) {
	m := s.held[seq]
	if m == nil {
		return
	}
	s.reservations.Remove(s.reservations.Search(func(r *reservation) bool { return r.no >= m.heldNo }))
	delete(s.held, seq)
	m.held = 0
	m.site.heldMachines--
	s.sites[s.jobs.Get(seq).owner].heldFor--
	if m.offered {
		s.wakeMachine(m)
	}
}

// unholdFor ends the reservations for a site's jobs; nil means all sites.
func (s *holding) unholdFor(owner *site) {
	if owner != nil && owner.heldFor == 0 { // so that leaving and returning repeatedly searches once
		return
	}
	var seqs []uint64
	for r := range s.reservations.All() {
		if owner == nil || s.jobs.Get(r.seq).owner == owner.id {
			seqs = append(seqs, r.seq)
		}
	}
	for _, seq := range seqs {
		s.unhold(seq)
	}
}

// unholdIdle ends the reservation of a job of which nothing waits any more.
func (s *holding) unholdIdle(seq uint64, j *job) {
	if j.waiting() == 0 {
		s.unhold(seq)
	}
}

// checkHolds ends the reservations of a site's machines that can no longer serve them, for example because
// its own users have taken the room: the next search looks elsewhere.
func (s *holding) checkHolds(x *site) {
	if x.heldMachines == 0 {
		return
	}
	for _, m := range x.machines {
		if m.held != 0 && (x.state != Alive || !s.fits(s.jobs.Get(m.held).class, m, m.exposed)) {
			s.unhold(m.held)
		}
	}
}

// couldRun reports whether one of the site's machines, if it were empty, fits such a task.
func (x *site) couldRun(h *command.Shape) bool {
	// Most of what fits nowhere is refused here, without looking at the machines.
	if !h.Need.FitsIn(x.most) || !h.Allows(x.name) {
		return false
	}
	return slices.ContainsFunc(x.machines, func(m *machine) bool { return m.takes(h, m.whole) })
}
