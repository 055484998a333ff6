package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
)

// moment returns where in the log the entry stands, for the roster.
func (s *clock) moment() roster.Moment {
	return roster.Moment{Index: s.index, Ms: s.time, Epoch: s.Epoch()}
}

// rosterCode says why a site may not register with a data directory: by the federation's roster, if it has one.
func (s *fleet) rosterCode(name string, node [16]byte) command.Code {
	if !s.roster.Founded() {
		return command.OK
	}
	switch m, ok := s.roster.Member(name); {
	case !ok:
		return command.NotMember
	case m.Banned:
		return command.Banned
	case m.Key.Node() != node:
		return command.NameTaken
	}
	return command.OK
}

// inRoster is rosterCode in words.
func (s *fleet) inRoster(name string, node [16]byte) error {
	if code := s.rosterCode(name, node); code != command.OK {
		return fmt.Errorf("%w: site %s: %s", ErrNameTaken, name, code)
	}
	return nil
}

// dispatchRoster executes a command about who the members are.
func (s *State) dispatchRoster(by *site, body command.Body) (r command.Result) {
	at, checks, commands := s.moment(), s.roster.Checks(), s.roster.Commands()
	var passed *roster.Motion
	switch c := body.(type) {
	case *command.Invite:
		r.Motion, r.Code = s.roster.Invite(by.name, c, at)
	case *command.Revoke:
		r.Code = s.roster.Revoke(by.name, c.Key, at)
	case *command.Admit:
		r.Code = s.roster.Admit(c, s.federation, at)
	case *command.Rekey:
		r.Code = s.rekey(c, at)
	case *command.Motion:
		if r.Code = s.canPropose(c); r.Code == command.OK {
			r.Motion, passed, r.Code = s.roster.Propose(by.name, c, at)
		}
	case *command.Vote:
		passed, r.Code = s.roster.Vote(by.name, c.Motion, c.Yes, at)
	case *command.GossipKey:
		if r.Code = command.OldTerm; c.Term == s.term {
			r.Code = s.roster.SetGossip(c, at)
		}
	}
	s.steps.used += uint64(s.roster.Checks()-checks)*stepVerify + uint64(s.roster.Commands()-commands)*stepRoster
	s.enact(passed)
	return r
}

// rekey replaces a site's key. One that was replaced by the recovery key was lost or stolen: the site goes on from
// where the federation has it, on whatever disk.
func (s *State) rekey(c *command.Rekey, at roster.Moment) command.Code {
	before, _ := s.roster.Member(c.Site)
	code := s.roster.Rekey(c, s.federation, at)
	s.renameNode(c.Site)
	if code == command.OK && c.ByRecovery && before.Key != c.Key {
		s.handOver(s.byName[c.Site])
	}
	return code
}

// handOver has a site's next directory begin afresh: whoever runs there has no key any more, and renews no lease.
func (s *State) handOver(x *site) {
	if x == nil {
		return
	}
	x.boots = [][16]byte{unknownBoot} // the next directory remembers none
	if x.present() {
		s.away(x, SiteGone)
	}
}

// canPropose refuses a motion that could not be done now, by more than the roster.
func (s *fleet) canPropose(c *command.Motion) command.Code {
	switch c.What {
	case command.MotionPolicy:
		return s.canSetParams(c.Params)
	case command.MotionForget:
		if x := s.byName[c.Site]; x != nil && x.present() {
			return command.NotOwner
		}
	case command.MotionAdmit, command.MotionElector, command.MotionNoElector, command.MotionBan, command.MotionUnban,
		command.MotionRebind:
	}
	return command.OK
}

// countMotions decides what is open again, where who may vote has changed.
func (s *State) countMotions() {
	if s.roster.Unfinished() {
		s.steps.used += uint64(s.bounds.roster.Motions) * stepTally
	}
	for _, m := range s.roster.EndEntry(s.moment()) {
		s.enact(m)
	}
}

// enact does what a motion that passed means for machines and jobs; nil does nothing.
func (s *State) enact(m *roster.Motion) {
	if m == nil {
		return
	}
	x := s.byName[m.Site]
	switch m.Kind {
	case command.MotionBan:
		if x != nil && x.present() {
			s.away(x, SiteGone)
		}
	case command.MotionRebind:
		s.handOver(x)
		s.renameNode(m.Site)
	case command.MotionPolicy:
		if s.setParams(&m.Params).Code != command.OK {
			s.roster.Void(m.Number)
		}
	case command.MotionForget:
		switch {
		case x == nil || x.present():
			s.roster.Void(m.Number)
		case !x.gone:
			s.finishDeparture(x)
		}
	case command.MotionAdmit, command.MotionElector, command.MotionNoElector, command.MotionUnban:
	}
}

// renameNode has a site's data directory be that of its key.
func (s *fleet) renameNode(name string) {
	x := s.byName[name]
	m, ok := s.roster.Member(name)
	if x == nil || !ok || x.node == m.Key.Node() {
		return
	}
	delete(s.byNode, x.node)
	x.node = m.Key.Node()
	s.byNode[x.node] = x
}

// Roster returns the members, invitations and motions of now. What it points to never changes.
func (s *views) Roster() roster.Contents { return s.roster.Contents() }

// RosterChanged returns the entry in which members, their keys or their standing last changed; 0: there is no roster.
func (s *views) RosterChanged() uint64 { return s.roster.Changed() }

// Electors returns the sites whose votes count now.
func (s *views) Electors() []string { return s.roster.Electors(s.Epoch()) }

// Tally returns how the electors of now have voted on a motion.
func (s *views) Tally(m *roster.Motion) (yes, no, electors int) { return s.roster.Tally(m, s.Epoch()) }

// Member returns a site's entry in the roster.
func (s *views) Member(site string) (roster.Member, bool) { return s.roster.Member(site) }

// GossipKey returns the key of the gossip between brokers.
func (s *views) GossipKey() roster.GossipKey { return s.roster.Gossip() }

// NextGossip returns the generation of the key of gossip that the leader should make now; 0: none.
func (s *views) NextGossip() uint64 { return s.roster.NextGossip(s.time) }
