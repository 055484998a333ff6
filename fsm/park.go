package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// siteLost executes a SiteLost (D6): it parks the site, unless the command comes from a former leader or
// means a former incarnation.
func (s *State) siteLost(c *command.SiteLost) command.Result {
	x := s.byName[c.Site]
	switch {
	case c.Term != s.term:
		return command.Result{Code: command.OldTerm}
	case x == nil:
		return command.Result{Code: command.UnknownSite}
	case x.incarnation != c.Incarnation:
		return command.Result{Code: command.OldIncarnation}
	case x.present():
		s.away(x, SiteGone)
	}
	return command.Result{}
}

// away parks a site: its offers are void, what it ran for others returns to the queue, now or when its
// bound has passed, and its own waiting jobs leave matching. Its tasks that run elsewhere continue; those
// it runs itself wait for it.
func (s *State) away(x *site, to SiteState) {
	x.state, x.lostMs, s.next = to, s.time, 0
	s.tellAway(x)
	s.park(x)
	s.install(x, &command.Offer{})
	s.unholdFor(x)
	s.planFor(x)
	s.undertake(chore{kind: choreAway, site: x.id})
}

// suspect executes a Suspect: it suspends or resumes the site's offers. What runs there continues: a hint
// may be wrong, and then nothing was lost. Only the tasks of jobs that asked for it may begin elsewhere
// meanwhile; see doubt.go.
func (s *State) suspect(c *command.Suspect) command.Result {
	x := s.byName[c.Site]
	switch {
	case x == nil:
		return command.Result{Code: command.UnknownSite}
	case x.incarnation != c.Incarnation:
		return command.Result{Code: command.OldIncarnation}
	case c.On && x.state == Alive:
		x.state = Suspected
		s.tellSite(EventSiteSuspected, x)
		s.checkHolds(x)
		s.weighTotals(x)
		s.hint(x, choreDoubt)
	case !c.On && x.state == Suspected:
		x.state = Alive
		s.tellSite(EventSiteTrusted, x)
		s.wakeSite(x)
		s.hint(x, choreTrust)
	}
	return command.Result{}
}

// wakeSite makes all machines of a site that is heard again be tried: none was drawn for what came meanwhile.
// Once an entry is enough, since nothing is matched between its commands.
func (s *matching) wakeSite(x *site) {
	if x.wokenAt == s.index {
		s.weighTotals(x)
		return
	}
	x.wokenAt = s.index
	s.steps.used += uint64(len(x.machines)) * stepLook
	for _, m := range x.machines {
		if m.resting = false; m.pass == s.pass {
			s.putAside(m)
		}
	}
	s.weighSite(x)
}

// forget executes a Forget: the departure of a lost site ends now. A site that is present may only forget
// itself: it leaves.
func (s *State) forget(by *site, c *command.Forget) command.Result {
	x := s.byName[c.Site]
	switch {
	case x == nil:
		return command.Result{Code: command.UnknownSite}
	case x.present() && x != by:
		return command.Result{Code: command.NotOwner}
	case x != by && s.roster.Founded():
		return command.Result{Code: command.NeedsMotion}
	case x.present():
		s.away(x, Left)
	}
	if !x.gone {
		s.finishDeparture(x)
	}
	return command.Result{}
}

// finishDeparture ends everything that an absent site has waiting: its departure is over. Its account
// stays.
func (s *State) finishDeparture(x *site) {
	x.state, x.gone, s.next = Left, true, 0
	s.join(-1)
	s.tellSite(EventSiteForgotten, x)
	s.undertake(chore{kind: choreOwn, site: x.id})
}

// depart ends departures that are over.
func (s *State) depart() {
	if s.parkedUntil == 0 || s.time < s.parkedUntil {
		return
	}
	for _, x := range s.sites {
		if x.parked() && s.time >= x.lostMs+s.params.DepartureMs {
			s.finishDeparture(x)
		}
	}
	s.plan()
}

// parked reports whether the site is away and its waiting jobs wait for it.
func (x *site) parked() bool { return !x.present() && !x.gone }

// plan computes when the next departure ends, unless one is ended early.
func (s *State) plan() {
	s.parkedUntil = 0
	if s.params.DepartureMs == 0 {
		return
	}
	for _, x := range s.sites {
		s.planFor(x)
	}
}

// planFor does so for one site that may be away: many sites leave and return in an entry, and none of them
// causes a look at all others.
func (s *State) planFor(x *site) {
	until := x.lostMs + s.params.DepartureMs
	if s.params.DepartureMs > 0 && x.parked() && (s.parkedUntil == 0 || until < s.parkedUntil) {
		s.parkedUntil = until
	}
}
