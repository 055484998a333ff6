package replica

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node/coord"
)

var _ coord.Electoral = (*Replica)(nil)

// OnRoster has a function told who the members are, now and after each entry that changed it, before anybody sees the
// entry's results: whom the entry expelled has no connection when its result is known. It must not block, nor read
// the replica.
func (r *Replica) OnRoster(tell func(index uint64, c roster.Contents)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onRoster, r.told = tell, 0
	r.tellRoster()
}

// OnGossip has a function told the key of gossip, at least now and after each entry that changed it. It must not
// block, nor read the replica.
func (r *Replica) OnGossip(tell func(roster.GossipKey)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onGossip, r.told = tell, 0
	r.tellRoster()
}

// tellRoster is called after each change of the state. REQUIRES: r.mu held.
func (r *Replica) tellRoster() {
	at := r.state.RosterChanged()
	if at == r.told || r.onRoster == nil && r.onGossip == nil {
		return
	}
	r.told = at
	if r.onRoster != nil {
		r.onRoster(at, r.state.Roster())
	}
	if r.onGossip != nil {
		r.onGossip(r.state.GossipKey())
	}
}

// MayVote implements coord.Electoral: in a federation without a roster all may.
func (r *Replica) MayVote(site string) (may bool) {
	r.View(func(s *fsm.State) {
		m, known := s.Member(site)
		may = s.RosterChanged() == 0 || known && m.Elector && !m.Banned
	})
	return may
}

// Expelled implements coord.Electoral.
func (r *Replica) Expelled(site string) (expelled bool) {
	r.View(func(s *fsm.State) {
		m, _ := s.Member(site)
		expelled = m.Banned
	})
	return expelled
}

// ofRoster reports whether a batch has a command about the members, their invitations or motions: those have no events.
func ofRoster(b *command.Batch) bool {
	return slices.ContainsFunc(b.Commands, func(c command.Command) bool {
		switch c.Body.Kind() {
		case command.KindInvite, command.KindRevoke, command.KindAdmit, command.KindRekey, command.KindMotion,
			command.KindVote:
			return true
		default:
			return false
		}
	})
}
