package fsm

import (
	"cmp"
	"slices"
)

// siteLost executes a SiteLost (D6): unless it comes from a former lead or
// means a former incarnation, the site is parked.
func (s *State) siteLost(c *SiteLost) Result {
	x := s.byName[c.Site]
	switch {
	case c.Term != s.term:
		return Result{Code: OldTerm}
	case x == nil:
		return Result{Code: UnknownSite}
	case x.incarnation != c.Incarnation:
		return Result{Code: OldIncarnation}
	case x.present():
		s.away(x, SiteGone)
	}
	return Result{}
}

// away parks a site: its offers are void, what it ran for others returns to the
// queue, now or when its bound has passed, its own waiting jobs leave matching. Its tasks that run elsewhere go
// on; those it runs itself wait for it.
func (s *State) away(x *site, to SiteState) {
	x.state, x.lostMs = to, s.time
	s.tellAway(x)
	s.park(x)
	s.install(x, &Offer{})
	for _, slot := range s.liveAt(x) {
		a := s.attempts.get(slot)
		switch {
		case a.way == wayDying: // already out of its hands
		case s.jobs.get(a.seq).owner != x.id || a.way == wayStopping:
			s.lost(slot)
		default:
			s.shelve(slot, wayAway)
		}
	}
	for _, l := range x.lanes {
		s.unholdLane(l)
	}
	s.sweep(x)
	s.plan()
}

// liveAt returns the slots of a site's live attempts, by arrival of the job and
// task.
func (s *State) liveAt(x *site) []uint64 {
	slots := s.slotsOf(x, 0)
	slices.SortFunc(slots, func(a, b uint64) int {
		p, q := s.attempts.get(a), s.attempts.get(b)
		return cmp.Or(cmp.Compare(p.seq, q.seq), cmp.Compare(p.task, q.task))
	})
	return slots
}

// suspect executes a Suspect: the site's offers rest or wake. What runs there goes
// on: a hint may be wrong, and then nothing was lost.
func (s *State) suspect(c *Suspect) Result {
	x := s.byName[c.Site]
	switch {
	case x == nil:
		return Result{Code: UnknownSite}
	case x.incarnation != c.Incarnation:
		return Result{Code: OldIncarnation}
	case c.On && x.state == Alive:
		x.state = Suspected
		s.tellSite(EventSiteSuspected, x)
		s.checkHolds(x)
	case !c.On && x.state == Suspected:
		x.state = Alive
		s.tellSite(EventSiteTrusted, x)
		for _, m := range x.machines { // none was drawn for what came meanwhile
			m.resting = false
		}
		s.weighSite(x)
	}
	s.weighTotals(x)
	return Result{}
}

// forget executes a Forget: the departure of a lost site ends now. A site that
// is present may only forget itself: it leaves.
func (s *State) forget(by *site, c *Forget) Result {
	x := s.byName[c.Site]
	switch {
	case x == nil:
		return Result{Code: UnknownSite}
	case x.present() && x != by:
		return Result{Code: NotOwner}
	case x.present():
		s.away(x, Left)
	}
	if !x.gone {
		s.end(x)
	}
	s.plan()
	return Result{}
}

// end ends all that an absent site has waiting: its departure is over. Its
// account stays.
func (s *State) end(x *site) {
	x.state, x.gone = Left, true
	s.join(-1)
	s.tellSite(EventSiteForgotten, x)
	for _, slot := range s.liveAt(x) { // own tasks on its own machines
		a := *s.attempts.get(slot)
		if s.jobs.get(a.seq).owner != x.id {
			continue // of others, and dying: its owner gets it back
		}
		r := s.recordOf(&a)
		r.detail = ownerLeft
		s.dropAttempt(slot)
		x.taken = s.index
		s.endTask(a.seq, TaskLost, r)
		s.noteNotRun(&a)
	}
	for _, seq := range s.waitingOf(x) {
		s.endWaiting(seq, TaskLost, ownerLeft)
	}
}

// waitingOf returns the seqs of a site's jobs with waiting tasks, in order.
func (s *State) waitingOf(x *site) []uint64 {
	var seqs []uint64
	for _, l := range x.lanes {
		for _, q := range l.queues {
			seqs = append(seqs, q.waiting(s)...)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// depart ends departures that are over.
func (s *State) depart() {
	if s.parkedUntil == 0 || s.time < s.parkedUntil {
		return
	}
	for _, x := range s.sites {
		if x.parked() && s.time >= x.lostMs+s.params.DepartureMs {
			s.end(x)
		}
	}
	s.plan()
}

// parked reports whether the site is away and its waiting jobs wait for it.
func (x *site) parked() bool { return !x.present() && !x.gone }

// plan computes when the next departure ends.
func (s *State) plan() {
	s.parkedUntil = 0
	if s.params.DepartureMs == 0 {
		return
	}
	for _, x := range s.sites {
		if until := x.lostMs + s.params.DepartureMs; x.parked() && (s.parkedUntil == 0 || until < s.parkedUntil) {
			s.parkedUntil = until
		}
	}
}
