package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// attempt is one live assignment of a task: assigned, running, or being stopped. Its capacity stays
// taken until its site reports the end.
type attempt struct {
	seq         uint64
	token       uint64 // entry that assigned it
	site        int32
	task        uint32
	attempt     uint32 // Invariant: grows per task
	failures    uint32
	losses      lossCount
	doubts      uint32 // how often a hint made its task continue elsewhere. Invariant: ≤ bounds.doubts
	phase       attemptPhase
	phaseBefore attemptPhase // before phaseAway, phaseAwaitingBound or a doubt; never one of these
	given       bool         // phaseAwaitingBound because its own site lost it: no registration returns it
	word        word         // from its site's registration; Invariant: set only while choreAnswer is left
	machine     *machine
	weight      int64 // per quantum; frozen at assignment
	queuedMs    int64
	assignedMs  int64
	startedMs   int64     // provisional; −1 = not yet
	boundMs     int64     // log time when it is certainly dead, 0 = only its site knows
	stopMs      int64     // phaseStopping: log time by which its site must have reported the end
	left        *leftover // set in phaseLeft
	why         string
	length      int64  // expected length in quanta, while it counts as running; only with State.waits
	rank        int32  // derived: position in State.dues, −1 = not in it
	prev, next  uint64 // derived: neighbours in site.live, slot + 1, 0 = none
	changed     uint64 // derived: entry of the last change that its site must see
}

// assign starts a task's next attempt on a machine.
func (s *lifecycle) assign(c choice, m *machine) {
	s.decisions++
	s.steps.used += stepAssign
	j := s.mutJob(c.seq)
	t := j.set(s.epoch)
	a := attempt{
		seq: c.seq, task: c.task, token: s.index, site: m.site.id, machine: m, attempt: 1,
		weight: s.weight(j.class.Need), queuedMs: j.queuedMs, assignedMs: s.time, startedMs: -1,
	}
	if c.back {
		b := *t.findBack(c.task)
		a.attempt, a.failures, a.losses, a.doubts = b.attempt+1, b.failures, b.losses, b.doubts
		a.queuedMs = b.queuedMs
		t.dropBack(c.task)
		if s.closeDoubt(j, &b, doubtPast, "its site was suspected, and its task went on at another one") {
			a.doubts++
		}
	} else if v := t.released().First(); v != nil {
		a.queuedMs = v.queuedMs
		t.gates().released.cut(span{from: v.from, to: v.from + 1})
	} else {
		j.next++
		j.skip()
	}
	t.live[phaseAssigned]++
	slot := s.addAttempt(&a)
	s.tellAttempt(EventTaskAssigned, &a)
	m.use(j.class.Need, 1)
	s.unhold(c.seq)
	s.weigh(m)
	owner := s.sites[j.owner]
	owner.lastStart, owner.account.LastStart = s.decisions, s.decisions
	s.dequeue(c.seq, j, 1)
	s.noteAssigned(owner, j, &a, slot)
	if s.waits != nil || s.params.Policy == sched.RoundRobin { // an assignment moves their ranks
		s.rerank(owner)
	}
}

// addAttempt adds a live attempt to the state's table and indexes.
func (s *attemptTable) addAttempt(a *attempt) (slot uint64) {
	slot = s.enterSlot(a)
	s.live[taskKey{a.seq, a.task}] = slot
	s.countPhase(a.phase, 1)
	s.watch(slot)
	return slot
}

// countPhase counts n attempts as in a phase; n may be negative.
func (s *attemptTable) countPhase(w attemptPhase, n int) {
	switch w {
	case phaseAssigned:
		s.assigned += n
	case phaseAwaitingBound:
		s.dying += n
	case phaseRunning, phaseStopping, phaseAway, phaseLeft:
	}
}

// enterSlot adds an attempt to the table and to its site's list. The caller checks whether this fills
// the site.
func (s *attemptTable) enterSlot(a *attempt) (slot uint64) {
	slot, ok := s.slots.Pop()
	if !ok {
		slot = s.nextSlot
		s.nextSlot++
	}
	p, x := s.attempts.Put(slot, s.epoch), s.sites[a.site]
	*p = *a
	p.rank = -1
	s.enlist(x, slot)
	x.hold(slot, a.word)
	return slot
}

// dropAttempt removes a live attempt and frees its capacity.
func (s *lifecycle) dropAttempt(slot uint64) {
	s.steps.used += stepSettle
	need := s.jobs.Get(s.attempts.Get(slot).seq).class.Need
	s.detach(slot)
	s.free(slot, need)
}

// detach removes a live attempt from its job's records.
func (s *jobTable) detach(slot uint64) {
	s.unwatch(slot)
	a := s.attempts.Get(slot)
	s.mutJob(a.seq).set(s.epoch).live[a.phase]--
	s.countPhase(a.phase, -1)
	delete(s.live, taskKey{a.seq, a.task})
}

// free removes an attempt that is no longer live from its machine and its site.
func (s *matching) free(slot uint64, need command.Resources) {
	a := s.attempts.Get(slot)
	m := a.machine
	s.delist(s.sites[a.site], slot)
	m.use(need, -1)
	s.attempts.Drop(slot, s.epoch)
	s.slots.Push(slot)
	if m.offered {
		s.wakeMachine(m)
	} else {
		s.weighTotals(m.site)
	}
}

// setPhase changes an attempt's phase. A caller that thereby asks the site for something must also call
// touch.
func (s *jobTable) setPhase(slot uint64, to attemptPhase) {
	s.steps.used += stepStop
	s.unwatch(slot)
	a := s.attempts.Mut(slot, s.epoch)
	t := s.mutJob(a.seq).set(s.epoch)
	t.live[a.phase]--
	t.live[to]++
	s.countPhase(a.phase, -1)
	s.countPhase(to, 1)
	a.phase, a.stopMs = to, 0
	if to == phaseStopping {
		a.stopMs = s.time + s.bounds.stopMs
	}
	s.watch(slot)
}

// findAttempt returns the slot of the live attempt that ref names at site x, or false. Reports about
// anything else are fenced and change nothing.
func (s *jobTable) findAttempt(ref *command.AttemptRef, x *site) (uint64, bool) {
	seq := s.findJob(ref.Job)
	if seq == 0 {
		return 0, false
	}
	slot, ok := s.live[taskKey{seq, ref.Task}]
	if !ok {
		return 0, false
	}
	a := s.attempts.Get(slot)
	return slot, noTokenCheck || a.site == x.id && a.attempt == ref.Attempt && a.token == ref.Token
}

// started executes a Started.
func (s *State) started(x *site, c *command.Started) command.Result {
	for i := range c.Attempts {
		r := &c.Attempts[i]
		slot, ok := s.findAttempt(&r.AttemptRef, x)
		if open, is := s.findOpen(&r.AttemptRef, x); is {
			s.startedInDoubt(open, r.DelayMs)
			continue
		}
		if !ok {
			continue
		}
		s.regain(slot)
		if a := s.attempts.Get(slot); a.startedMs >= 0 || a.phase == phaseAwaitingBound {
			continue
		}
		a := s.attempts.Mut(slot, s.epoch)
		s.setStarted(a, min(a.assignedMs+r.DelayMs, s.time))
		if a.phase == phaseAssigned {
			s.setPhase(slot, phaseRunning)
			a = s.attempts.Mut(slot, s.epoch)
		}
		s.tellAttempt(EventTaskStarted, a)
	}
	return command.Result{}
}

// setStarted sets an attempt's provisional start, from which it counts as running.
func (s *lifecycle) setStarted(a *attempt, ms int64) {
	j := s.mutJob(a.seq)
	if j.startedMs < 0 || ms < j.startedMs {
		j.startedMs = ms
	}
	a.startedMs = ms
	start, queued := s.quanta(ms), s.quanta(a.queuedMs)
	s.sites[a.site].account.GaveRun.Add(a.weight, start, queued)
	s.sites[j.owner].account.UsedRun.Add(a.weight, start, queued)
}

// unsetStarted subtracts exactly what setStarted added.
func (s *lifecycle) unsetStarted(a *attempt) {
	if a.startedMs < 0 {
		return
	}
	start, queued := s.quanta(a.startedMs), s.quanta(a.queuedMs)
	s.sites[a.site].account.GaveRun.Sub(a.weight, start, queued)
	s.sites[s.jobs.Get(a.seq).owner].account.UsedRun.Sub(a.weight, start, queued)
}
