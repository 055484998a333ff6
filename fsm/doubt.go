package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// A suspicion is a hint, and often withdrawn. Jobs with on_loss immediate asked to be requeued at the
// first hint: their tasks may run twice. So the tasks of such jobs that a suspected site runs for others
// wait again, without counting a loss, and their attempts are in doubt: they become leftovers that get
// their tasks back, as they were, if the site is heard again before another one has taken the tasks.

// doubt says how a leftover relates to its task.
type doubt uint8

const (
	doubtNone doubt = iota // the task is settled: no report about the leftover counts
	// doubtOpen: the task waits because its site is suspected. Invariant: this is the task's latest
	// attempt, and its site is suspected or has a chore.
	doubtOpen
	// doubtPast: the task continued elsewhere. The leftover is to be stopped; if it succeeds first,
	// that counts.
	doubtPast
	lastDoubt = doubtPast
)

// maxDoubts bounds how often hints make a task continue elsewhere, so that a site whose state keeps
// changing leaves a bounded number of attempts. After that only losses requeue the task.
const maxDoubts = 3

// doubt puts a live attempt of a suspected site in doubt if its job asked for that. If the attempt is to
// be stopped, its task ends, whether it was cancelled before the suspicion, after it, or while this is
// half done.
func (s *lifecycle) doubt(slot uint64) {
	a := s.attempts.Get(slot)
	j := s.jobs.Get(a.seq)
	if j.onLoss != command.Immediate || j.owner == a.site || s.sites[j.owner].gone || a.doubts >= s.bounds.doubts {
		return
	}
	switch a.phase {
	case phaseAssigned, phaseRunning:
		s.putInDoubt(slot)
	case phaseStopping:
		s.leaveOver(slot, false, "")
	case phaseAway, phaseAwaitingBound, phaseLeft:
	}
}

// putInDoubt returns an attempt's task to the queue and keeps the attempt.
func (s *lifecycle) putInDoubt(slot uint64) {
	s.steps.used += stepSettle
	a := *s.attempts.Get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	r.detail = fmt.Sprintf("%s is suspected, where it may run on", s.sites[a.site].name)
	s.detach(slot)
	s.keepLeft(slot, doubtOpen)
	s.requeue(&a, r, doubted)
	s.noteNotRun(&a)
}

// findDoubt returns the attempt in doubt of a returned task, or false.
func (s *lifecycle) findDoubt(j *job, b *backTask) (slot uint64, ok bool) {
	if len(s.leftovers) == 0 {
		return 0, false
	}
	slot, ok = s.leftovers[leftKey{j.owner, j.num, b.task, b.attempt}]
	return slot, ok && s.attempts.Get(slot).left.doubt == doubtOpen
}

// closeDoubt ends the doubt about a returned task's attempt: the task was given to another site, or has
// ended. The attempt is to be stopped.
func (s *lifecycle) closeDoubt(j *job, b *backTask, to doubt, why string) (was bool) {
	slot, ok := s.findDoubt(j, b)
	if !ok {
		return false
	}
	a := s.attempts.Mut(slot, s.epoch)
	if a.boundMs > 0 && a.boundMs <= s.time { // it is certainly dead
		s.dropLeft(slot)
		return true
	}
	l := *a.left
	l.doubt = to
	a.left, a.why = &l, why
	s.watch(slot)
	s.touch(slot)
	return true
}

// findOpen returns the slot of the attempt in doubt that ref names at site x and whose task waits, or
// false.
func (s *lifecycle) findOpen(ref *command.AttemptRef, x *site) (uint64, bool) {
	slot, ok := s.findLeft(ref, x)
	return slot, ok && s.attempts.Get(slot).left.doubt == doubtOpen
}

// findEnded is findAttempt for a site's report of an attempt's end: an attempt in doubt first gets its
// task back, and then ends with it.
func (s *lifecycle) findEnded(ref *command.AttemptRef, x *site) (uint64, bool) {
	if slot, ok := s.findAttempt(ref, x); ok {
		s.regain(slot)
		return slot, true
	}
	slot, ok := s.findOpen(ref, x)
	if ok {
		s.resume(slot)
	}
	return slot, ok
}

// startedInDoubt records the reported start of an attempt in doubt. It counts as running from then on if
// it gets its task back.
func (s *lifecycle) startedInDoubt(slot uint64, delayMs int64) {
	a := s.attempts.Mut(slot, s.epoch)
	if a.left.startedMs >= 0 {
		return
	}
	l := *a.left
	l.startedMs = min(a.assignedMs+delayMs, s.time)
	a.left, a.phaseBefore = &l, phaseRunning
}

// resume gives a leftover its waiting task back.
func (s *lifecycle) resume(slot uint64) {
	s.steps.used += stepSettle
	a := s.attempts.Get(slot)
	seq := a.seq
	j := s.mutJob(seq)
	t := j.set(s.epoch)
	b := *t.findBack(a.task)
	if b.attempt != a.attempt {
		s.closeDoubt(j, &b, doubtNone, succeededElsewhere)
	}
	t.dropBack(b.task)
	s.dequeue(seq, j, 1)
	s.noteResumed(j, s.attempts.Get(slot), b.queuedMs)
	s.unholdIdle(seq, j)
	s.reenter(slot, b.failures, b.losses, b.doubts, j.booked)
	s.tellAttempt(EventTaskResumed, s.attempts.Get(slot))
}

// resumeHeld gives a leftover its held task back: it has succeeded.
func (s *lifecycle) resumeHeld(slot uint64) {
	s.steps.used += stepSettle
	a := s.attempts.Get(slot)
	j := s.mutJob(a.seq)
	b := s.dropHeld(a.seq, j, a.task)
	x := s.sites[j.owner]
	x.held--
	x.againLeft = s.index
	s.noteUnheld(j, s.attempts.Get(slot))
	s.reenter(slot, b.failures, b.losses, b.doubts, j.booked)
	s.tellAttempt(EventTaskResumed, s.attempts.Get(slot))
}

// reenter makes a leftover its task's live attempt, as it was when it was left.
//
// REQUIRES: the task neither waits nor has a live attempt.
func (s *lifecycle) reenter(slot uint64, failures uint32, losses lossCount, doubts uint32, length int64) {
	s.unwatch(slot)
	p := s.attempts.Mut(slot, s.epoch)
	delete(s.leftovers, p.leftKey())
	started := p.left.startedMs
	p.phase, p.phaseBefore, p.left, p.why = p.phaseBefore, phaseAssigned, nil, ""
	p.failures, p.losses, p.doubts = failures, losses, doubts
	s.mutJob(p.seq).set(s.epoch).live[p.phase]++
	s.live[taskKey{p.seq, p.task}] = slot
	s.countPhase(p.phase, 1)
	if started >= 0 {
		s.setStarted(p, started)
	}
	if s.waits != nil && s.waits.has(p.seq, p.task) {
		s.expect(slot, length)
	}
}

const succeededElsewhere = "another attempt of its task succeeded first"

// overtake makes a leftover whose task continued elsewhere the task's live attempt again, because it has
// succeeded. The later attempt is to be stopped and does not count. It returns the task's latest attempt, and false
// if the task has ended, or another attempt has succeeded and its outputs are on their way.
func (s *lifecycle) overtake(slot uint64) (last uint32, ok bool) {
	a := s.attempts.Get(slot)
	j := s.jobs.Get(a.seq)
	if j == nil {
		return 0, false
	}
	live, ok := s.live[taskKey{a.seq, a.task}]
	if held := j.tasks.findAgain(a.task); !ok && held != nil {
		last = held.attempt
		s.resumeHeld(slot)
		return last, true
	}
	if !ok {
		b := j.tasks.findBack(a.task)
		if b == nil {
			return 0, false
		}
		last = b.attempt
		s.resume(slot)
		return last, true
	}
	s.steps.used += stepSettle
	later := *s.attempts.Get(live)
	s.unsetStarted(&later)
	s.detach(live)
	p := s.keepLeft(live, doubtNone)
	p.why = succeededElsewhere
	s.watch(live)
	s.touch(live)
	s.reenter(slot, later.failures, later.losses, later.doubts, later.length)
	return later.attempt, true
}

// countLoss counts one loss, of a leftover whose task continued elsewhere: once, as it would count if the
// task had waited for it. It ends nothing by itself.
func (s *lifecycle) countLoss(slot uint64, one lossCount) {
	a := s.attempts.Mut(slot, s.epoch)
	if a.left.doubt != doubtPast {
		return
	}
	a.settleDoubt()
	if live, ok := s.live[taskKey{a.seq, a.task}]; ok {
		s.attempts.Mut(live, s.epoch).losses += one
		return
	}
	switch j := s.jobs.Get(a.seq); {
	case j == nil:
	case j.tasks.findBack(a.task) != nil:
		s.mutJob(a.seq).set(s.epoch).findBack(a.task).losses += one
	case j.tasks.findAgain(a.task) != nil:
		s.mutJob(a.seq).set(s.epoch).findAgain(a.task).losses += one
	case j.tasks.findDelivery(a.task) != nil:
		s.mutJob(a.seq).set(s.epoch).findDelivery(a.task).losses += one
	}
}

// settleDoubt makes every later report about a leftover without effect.
//
// REQUIRES: a came from State.attempts.Mut, and is not in open doubt.
func (a *attempt) settleDoubt() {
	l := *a.left
	l.doubt, l.startedMs = doubtNone, -1
	a.left, a.phaseBefore = &l, phaseAssigned
}

// viewDoubt returns the note that a returned task may run twice, if its attempt is in doubt.
func (s *views) viewDoubt(j *job, b *backTask) string {
	slot, ok := s.findDoubt(j, b)
	if !ok {
		return ""
	}
	return fmt.Sprintf("may run twice: %s is suspected, where attempt %d may run on",
		s.sites[s.attempts.Get(slot).site].name, b.attempt)
}

// viewTwice returns the same note for a live attempt whose task another site may still run.
func (s *views) viewTwice(a *attempt) string {
	if len(s.leftovers) == 0 {
		return ""
	}
	j := s.jobs.Get(a.seq)
	slot, ok := s.leftovers[leftKey{j.owner, j.num, a.task, a.attempt - 1}]
	if !ok || s.attempts.Get(slot).left.doubt != doubtPast {
		return ""
	}
	return fmt.Sprintf("may run twice: %s was suspected, and attempt %d may not have ended there",
		s.sites[s.attempts.Get(slot).site].name, a.attempt-1)
}

// inDoubt reads the fields that only a leftover in doubt has.
func (r *snapReader) inDoubt(s *State, a *attempt) {
	a.phaseBefore = attemptPhase(r.upTo(uint64(phaseRunning), "state"))
	a.failures, a.losses, a.doubts = r.u32("failures"), r.losses(s), r.u32("doubts")
	a.weight = r.within(0, command.MaxTaskWeight, "weight")
	a.queuedMs, a.assignedMs, a.left.startedMs = r.ms(0, s.time), r.ms(0, s.time), r.ms(-1, s.time)
	r.check(a.left.startedMs < 0 || a.phaseBefore == phaseRunning && a.queuedMs <= a.left.startedMs,
		"an attempt in doubt started before it was queued")
	r.check(!a.given, "an attempt is given up and in doubt")
}

// isReturned reports whether a leftover's task waits, without a later attempt, because its site is
// suspected.
func (s *State) isReturned(a *attempt) bool {
	j := s.jobs.Get(a.seq)
	if j == nil || j.tasks == nil || j.num != a.left.num || j.owner != a.left.owner ||
		j.class.Need != a.left.need || j.onLoss != command.Immediate {
		return false
	}
	b := j.tasks.findBack(a.task)
	x := s.sites[a.site]
	return b != nil && b.attempt == a.attempt && a.site != j.owner && (x.state == Suspected || s.hasChore(x.id))
}
