package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// unknownBoot stands for a site's latest process, of which this state may not know: the site's next
// registration is compared with the one before.
var unknownBoot [16]byte

// Epoch returns how often the federation was recovered from the loss of its quorum.
func (s *clock) Epoch() uint64 { return command.EpochOf(s.index) }

// HeldMs returns how long nothing will be assigned, in log milliseconds; 0 = tasks are assigned.
func (s *clock) HeldMs() int64 { return max(0, s.heldUntil-s.time) }

// holds reports whether a new epoch still waits for attempts of the last one.
func (s *clock) holds() bool { return s.time < s.heldUntil }

// recover executes a Recover. This state may lack the newest entries, so it may not know who runs what: a
// task that waits here may have been assigned there. So nothing is assigned until every lease that was
// granted before has ended, and no other site keeps anything until it registers. It counts as away, and
// what it ran for others returns to the queue, when its bound has passed if it has one. What runs at its
// owner has no lease: it waits for its owner, which ends what this state does not know before it
// registers.
//
// The batch of the tool that begins an epoch is of no leader's term. In a federation with a roster one that a leader
// has ordered is refused.
func (s *State) recover(name string, c *command.Recover, term uint64) command.Result {
	by := s.byName[name]
	switch {
	case term != 0 && s.roster.Founded():
		return command.Result{Code: command.OutOfRange, Index: s.index}
	case by == nil:
		return command.Result{Code: command.UnknownSite, Index: s.index}
	case c.Epoch <= s.Epoch():
		return command.Result{Index: s.index}
	}
	s.index = command.StartOf(c.Epoch)
	hold := max(s.params.LeaseMs+s.params.MarginMs, c.HoldMs)
	s.heldUntil = max(s.heldUntil, min(s.time+hold, sched.MaxNow))
	for _, x := range s.order {
		if x == by {
			s.install(x, &command.Offer{})
			continue
		}
		if x.present() {
			s.away(x, SiteGone)
		}
		x.boot(unknownBoot, s.bounds.boots)
	}
	s.leader = ""
	s.roster.Recover(name, s.moment())
	return command.Result{Index: s.index}
}
