package fsm

import (
	"cmp"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// maxBoundMs is beyond every log time at which an attempt can be certainly dead.
const maxBoundMs = sched.MaxNow + 2*command.MaxTimeoutMs

// bound executes a Bound. A bound only grows, so a repeat under a later entry is safe. An attempt that is
// not merely assigned needs none: it is to be stopped, or its site no longer controls it.
func (s *State) bound(x *site, c *command.Bound) {
	for i := range c.Attempts {
		b := &c.Attempts[i]
		slot, ok := s.findAttempt(&b.AttemptRef, x)
		if !ok {
			slot, ok = s.findOpen(&b.AttemptRef, x)
		}
		if !ok {
			continue
		}
		s.regain(slot)
		a := s.attempts.Mut(slot, s.epoch)
		if a.phase != phaseAssigned && (a.phase != phaseLeft || a.phaseBefore != phaseAssigned) {
			continue
		}
		a.boundMs = max(a.boundMs, s.time+b.BoundMs+s.params.MarginMs)
		s.touch(slot)
	}
}

// stopping reports whether the end of the attempt was requested.
func (a *attempt) stopping() bool {
	shelved := a.phase == phaseAway || a.phase == phaseAwaitingBound
	return a.phase == phaseStopping || shelved && a.phaseBefore == phaseStopping
}

// mayLive reports whether a lost attempt must be waited for. Attempts of Immediate jobs may overlap, as
// their owners chose.
func (s *lifecycle) mayLive(slot uint64) bool {
	a := s.attempts.Get(slot)
	return a.boundMs > s.time && s.jobs.Get(a.seq).onLoss != command.Immediate
}

// boundByLease gives an attempt that a site runs for another a bound, if that was given up while its lease ran: by
// the electors, or because its key was recovered. The lease of a site that was lost has ended.
func (s *lifecycle) boundByLease(slot uint64) {
	x := s.sites[s.attempts.Get(slot).site]
	if !s.isLeased(x) {
		return
	}
	s.unwatch(slot)
	a := s.attempts.Mut(slot, s.epoch)
	a.boundMs = max(a.boundMs, x.lostMs+s.params.LeaseMs+s.params.MarginMs)
	s.watch(slot)
}

// isLeased reports whether an absent site may still hold its lease: nobody waited for that before it was parked.
func (s *fleet) isLeased(x *site) bool {
	m, ok := s.roster.Member(x.name)
	return ok && (m.Banned || len(x.boots) == 1 && x.boots[0] == unknownBoot)
}

// lost settles an attempt whose site is lost, or waits for its bound.
func (s *lifecycle) lost(slot uint64) {
	switch {
	case s.mayLive(slot):
		s.shelve(slot, phaseAwaitingBound)
	case s.attempts.Get(slot).boundMs > s.time:
		s.leaveOver(slot, false, "")
	default:
		s.drop(slot, command.Lost)
	}
}

// giveUp settles an attempt that its own site lost, or waits for its bound; why is the site's reason.
func (s *lifecycle) giveUp(slot uint64, why string) {
	switch {
	case s.mayLive(slot):
		s.awaitStopBound(slot, why)
	case s.attempts.Get(slot).boundMs > s.time:
		s.leaveOver(slot, true, strings.Clone(why))
	default:
		s.drop(slot, command.Lost)
	}
}

// awaitStopBound waits for the bound of an attempt that its own site lost; why is the site's reason.
func (s *lifecycle) awaitStopBound(slot uint64, why string) {
	s.shelve(slot, phaseAwaitingBound)
	s.touch(slot)
	a := s.attempts.Mut(slot, s.epoch)
	a.given = true
	if !a.stopping() {
		a.why = strings.Clone(why)
	}
}

// shelve takes an attempt from its site, to phaseAway or phaseAwaitingBound. Meanwhile it does not count
// as running; its room stays taken.
func (s *lifecycle) shelve(slot uint64, to attemptPhase) {
	a := s.attempts.Mut(slot, s.epoch)
	if a.phase == phaseAwaitingBound {
		return
	}
	s.unsetStarted(a)
	a.startedMs = -1
	a.phaseBefore = a.phase
	s.setPhase(slot, to)
	s.touch(slot)
	a = s.attempts.Get(slot)
	if to == phaseAwaitingBound {
		s.tellAttempt(EventTaskDying, a)
		return
	}
	s.tellAttempt(EventTaskWithdrawn, a)
}

// unshelve returns an attempt to its site, as it was.
func (s *lifecycle) unshelve(slot uint64) {
	a := s.attempts.Mut(slot, s.epoch)
	s.touch(slot)
	switch a.phase {
	case phaseAwaitingBound, phaseAway:
		s.setPhase(slot, a.phaseBefore)
	case phaseAssigned, phaseRunning, phaseStopping, phaseLeft:
	}
}

// regain returns an attempt at once to a site that reports about it before the state has acted on the
// site's registration. The outcome is as if the state had.
func (s *lifecycle) regain(slot uint64) {
	if a := s.attempts.Get(slot); a.phase == phaseAway || a.phase == phaseAwaitingBound && !a.given {
		s.unshelve(slot)
		s.tellAttempt(EventTaskAdopted, s.attempts.Get(slot))
	}
}

// dueMs returns the log time at which an attempt is settled without its site's report, 0 = never: at its
// bound, and if its site was asked to stop it, at stopMs if that is earlier.
func (a *attempt) dueMs() int64 {
	switch a.phase {
	case phaseLeft:
		if a.left.doubt == doubtOpen { // it may get its task back
			return 0
		}
		return a.boundMs
	case phaseAwaitingBound:
		return a.boundMs
	case phaseStopping:
		if a.boundMs > 0 {
			return min(a.boundMs, a.stopMs)
		}
		return a.stopMs
	case phaseAssigned, phaseRunning, phaseAway:
	}
	return 0
}

// expire settles the attempts that are due, in the order of times, jobs and tasks. Those too many for one
// entry are left to the next.
func (s *lifecycle) expire() {
	for s.expiring() && !s.steps.spent() {
		switch slot := *s.due.First(); s.attempts.Get(slot).phase {
		case phaseStopping:
			s.settleUnanswered(slot)
		case phaseLeft:
			s.dropLeft(slot)
		default:
			s.drop(slot, command.Lost)
		}
	}
}

// Dying returns how many lost attempts may live until their bounds; their tasks wait for that.
func (s *attemptTable) Dying() int { return s.dying }

// watch adds an attempt to the heap if it will be due.
func (s *attemptTable) watch(slot uint64) {
	if s.attempts.Get(slot).dueMs() > 0 {
		s.due.Push(slot)
	}
}

// unwatch removes an attempt from the heap, if it is in it.
func (s *attemptTable) unwatch(slot uint64) {
	if a := s.attempts.Get(slot); a.rank >= 0 {
		s.due.Remove(int(a.rank))
	}
}

// isDueBefore orders live attempts by time, job, task and attempt; no two are equal.
func (s *attemptTable) isDueBefore(i, k uint64) bool {
	a, b := s.attempts.Get(i), s.attempts.Get(k)
	return cmp.Or(
		cmp.Compare(a.dueMs(), b.dueMs()), cmp.Compare(a.seq, b.seq),
		cmp.Compare(a.task, b.task), cmp.Compare(a.attempt, b.attempt),
	) < 0
}
