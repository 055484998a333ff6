package fsm

import (
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// offer executes an Offer: it replaces the site's current one.
func (s *State) offer(x *site, c *command.Offer) command.Result {
	if c.Version <= x.offerVersion {
		return command.Result{Code: command.OldOffer}
	}
	s.install(x, c)
	return command.Result{}
}

// install puts an offer in force. A machine that is no longer offered stays, without room, while attempts
// are on it. All machines are worth trying again: their room may have grown, and bars against the former
// offer are lifted.
func (s *holding) install(x *site, c *command.Offer) {
	x.offerVersion = c.Version
	x.offers++
	before := x.exposed
	x.capacity, x.home = c.Capacity, c.Home
	x.exposed, x.most, x.widest = command.Resources{}, command.Resources{}, command.Resources{}
	old := x.machines
	x.machines = make([]*machine, 0, len(c.Machines))
	s.steps.used += uint64(len(c.Machines)) * stepLook
	for i := range c.Machines {
		n := &c.Machines[i]
		for len(old) > 0 && old[0].name < n.Name {
			s.retract(old[0])
			old = old[1:]
		}
		m := x.former[n.Name]
		switch {
		case len(old) > 0 && old[0].name == n.Name:
			m, old = old[0], old[1:]
		case m != nil:
			delete(x.former, n.Name)
		default:
			m = &machine{site: x, name: strings.Clone(n.Name)}
		}
		was := m.reach()
		if !m.offered && s.phase == cut { // it waits for the next pass
			m.pass = s.pass
		}
		m.exposed, m.whole, m.runs, m.offered = n.Resources, n.Resources.Greater(n.Whole), n.Runs, true
		m.slots = n.Slots
		s.relabel(m, n.Labels)
		if m.resting = false; m.pass == s.pass {
			s.putAside(m)
		}
		x.exposed, x.reach = x.exposed.Plus(n.Resources), x.reach.Plus(m.reach().Minus(was))
		x.most, x.widest = x.most.Greater(m.whole), x.widest.Greater(m.exposed)
		x.machines = append(x.machines, m)
	}
	for _, m := range old {
		s.retract(m)
	}
	s.setMissed(x, false)
	s.pruneTried()
	s.tellOffer(x, before)
	s.setShare(x)
	s.noteCores(x)
	s.weighSite(x)
	s.checkHolds(x)
}

// retract keeps a machine that is no longer offered only while it is in use.
func (s *holding) retract(m *machine) {
	x, was := m.site, m.reach()
	m.offered = false
	s.unhold(m.held)
	m.exposed, m.whole, m.runs, m.resting, m.tried = command.Resources{}, command.Resources{}, 0, false, false
	m.slots = 0
	s.relabel(m, "")
	x.reach = x.reach.Plus(m.reach().Minus(was))
	if m.tasks > 0 {
		x.keepFormer(m)
	}
}

// keepFormer keeps a machine that is no longer offered. There may be very many, so an offer looks only at
// those that it names.
func (x *site) keepFormer(m *machine) {
	if x.former == nil {
		x.former = map[string]*machine{}
	}
	x.former[m.name] = m
}

// decline executes a Decline: the assignments go back to the queue, their jobs barred from the site until
// its next offer. A replacement offer is installed first.
func (s *State) decline(x *site, c *command.Decline) command.Result {
	if c.Offer != nil && c.Offer.Version > x.offerVersion {
		s.install(x, c.Offer)
	}
	o := declined
	if c.Unopened {
		o = unopened
	}
	for i := range c.Attempts {
		s.sendBack(x, &c.Attempts[i], c.Reason, o)
	}
	return command.Result{}
}

// sendBack returns an assignment of site x, of which nothing ran, to the queue. Declined and unopened ones are barred
// from the site.
func (s *lifecycle) sendBack(x *site, ref *command.AttemptRef, why string, o command.Outcome) {
	slot, ok := s.findEnded(ref, x)
	if !ok {
		if slot, ok = s.findLeft(ref, x); ok {
			s.answerForLeft(slot, false, false)
		}
		return
	}
	a := *s.attempts.Get(slot)
	switch {
	case a.phase == phaseStopping, s.cancelling[a.seq] && a.phase != phaseAwaitingBound:
		s.drop(slot, command.Lost)
		return
	case a.phase == phaseAwaitingBound: // it did start
		return
	}
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	s.dropAttempt(slot)
	r.detail = strings.Clone(why)
	if o != returned {
		s.bar(a.seq, s.mutJob(a.seq), x)
	}
	if o == unopened {
		s.barAlike(a.seq, x)
	}
	s.requeue(&a, r, o)
	s.noteNotRun(&a)
}
