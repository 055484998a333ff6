package fsm

import (
	"cmp"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// complete executes a Complete: each report ends one attempt, if it is live.
func (s *lifecycle) complete(x *site, c *command.Complete) command.Result {
	for i := range c.Attempts {
		e := &c.Attempts[i]
		if slot, ok := s.findEnded(&e.AttemptRef, x); ok {
			s.finish(slot, e, 0)
		} else if slot, ok = s.findLeft(&e.AttemptRef, x); ok {
			s.finishLeft(slot, e)
		}
	}
	return command.Result{}
}

// finishLeft ends a leftover as its site reported. If its task was requeued elsewhere, its success counts:
// the first success does.
func (s *lifecycle) finishLeft(slot uint64, e *command.Ended) {
	past := s.attempts.Get(slot).left.doubt == doubtPast
	if past && e.Outcome == command.Succeeded {
		if last, ok := s.overtake(slot); ok {
			s.finish(slot, e, last)
			return
		}
	}
	switch {
	case past && e.Outcome == command.Lost:
		s.countLoss(slot, bySite)
	case past && e.Outcome == command.Orphaned:
		s.countLoss(slot, orphaned)
	}
	s.answerForLeft(slot, false, e.Outcome == command.Lost)
}

// finish ends an attempt as its site reported: it charges the attempt, frees its room, and decides what
// happens to the task. last is the attempt that it overtook, 0 = none.
func (s *lifecycle) finish(slot uint64, e *command.Ended, last uint32) {
	if e.Outcome == command.Lost && s.attempts.Get(slot).boundMs > s.time {
		s.giveUp(slot, e.Detail)
		return
	}
	a := *s.attempts.Get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	a.attempt = max(a.attempt, last)
	start, end := s.span(&a, e)
	r.endedMs, r.exit, r.signal, r.detail = s.time, e.ExitCode, e.Signal, strings.Clone(e.Detail)
	r.facts = factsOf(s.jobs.Get(a.seq), e)
	if e.Outcome != command.Lost {
		owner := s.sites[s.jobs.Get(a.seq).owner]
		s.charge(owner, s.sites[a.site], a.weight, s.quanta(start), s.quanta(end), s.quanta(a.queuedMs))
		s.charged, s.beyond = end-start, max(0, e.DelayMs+e.RunMs-(s.time-a.assignedMs))
		if a.startedMs >= 0 || e.Ran || e.RunMs > 0 {
			r.startedMs, r.endedMs = start, end
			s.earn(a.machine, s.jobs.Get(a.seq).class.Need, end-start)
			if j := s.mutJob(a.seq); j.startedMs < 0 || start < j.startedMs {
				j.startedMs = start
			}
		}
	}
	s.dropAttempt(slot)
	s.settleTask(&a, r, e.Outcome)
	s.charged, s.beyond = 0, 0
	if e.Outcome == command.Lost {
		s.noteNotRun(&a)
	} else {
		s.noteRan(&a, s.quanta(start), s.quanta(end))
	}
}

// span returns the run that is charged, in log milliseconds. It is as measured, but bounded by the log's
// own entries, so that a late report cannot inflate it. That of an orphan, whose end nobody saw, begins at the
// earliest when it was reported to run.
func (s *lifecycle) span(a *attempt, e *command.Ended) (start, end int64) {
	start = min(a.assignedMs+e.DelayMs, s.time)
	if e.Outcome == command.Orphaned {
		start = max(start, a.startedMs)
	}
	end = min(start+e.RunMs, s.time)
	if limit := s.jobs.Get(a.seq).timeoutMs; limit > 0 {
		end = min(end, start+limit)
	}
	return start, end
}

// recordOf returns what is known of an attempt that ends.
func (s *jobTable) recordOf(a *attempt) record {
	return record{
		task: a.task, attempt: a.attempt, failures: a.failures, losses: a.losses, site: a.site, token: a.token,
		queuedMs: a.queuedMs, assignedMs: a.assignedMs, startedMs: a.startedMs, endedMs: s.time,
		machine: a.machine.name,
	}
}

// settleTask decides what happens to a task whose attempt is gone.
func (s *lifecycle) settleTask(a *attempt, r record, o command.Outcome) {
	j := s.jobs.Get(a.seq)
	stopping := s.isStopping(a)
	switch {
	case o == command.Succeeded && (!j.delivers || j.owner == a.site): // the owner has what it has run itself
		s.endTask(a.seq, TaskSucceeded, r)
	case stopping:
		r.detail = cmp.Or(r.detail, a.why, s.cancelWhy(j))
		s.endTask(a.seq, TaskCancelled, r)
	case o == command.Succeeded:
		s.beginDelivery(a, r)
	case o == command.Failed || o == command.TimedOut:
		r.failures++
		if r.failures >= j.maxAttempts {
			s.endTask(a.seq, TaskFailed, r)
			return
		}
		s.requeue(a, r, o)
	case o == command.Orphaned:
		s.settleOrphan(a, r)
	default: // Lost, or stopped though nobody asked for it
		s.lose(a, r, o)
	}
}

// lose decides what happens to a task that its site lost.
func (s *lifecycle) lose(a *attempt, r record, o command.Outcome) {
	r.losses += bySite
	r.detail = cmp.Or(r.detail, a.why, "lost by "+s.sites[a.site].name)
	if s.jobs.Get(a.seq).onLoss == command.Never || r.losses.bySite() >= MaxLosses {
		s.endTask(a.seq, TaskLost, r)
		return
	}
	s.requeue(a, r, o)
}

// requeue returns a task to the head of its job: it keeps its place in the order of arrival and gets a
// new queue time. If its owner's departure is over, it ends as lost instead.
func (s *lifecycle) requeue(a *attempt, r record, o command.Outcome) {
	seq := a.seq
	j := s.mutJob(seq)
	if s.sites[j.owner].gone {
		r.detail = ownerLeft
		s.endTask(seq, TaskLost, r)
		return
	}
	if j.gated && holdsAfter(o) {
		s.holdAgain(a, r, o)
		return
	}
	j.set(s.epoch).addBack(backTask{
		task: r.task, attempt: a.attempt, failures: r.failures, losses: r.losses, doubts: a.doubts, queuedMs: s.time,
	})
	s.tellRecord(EventTaskRequeued, j, &r, endingOf(o))
	s.enqueue(seq, j, 1)
	s.noteRequeued(j)
}

// endTask ends one task whose attempt is already gone, or that was waiting again.
func (s *lifecycle) endTask(seq uint64, state TaskState, r record) {
	j := s.mutJob(seq)
	s.noteEnd(j, j.set(s.epoch), state, r)
	s.endJob(seq, j)
}

// noteEnd records one task's end in its job.
func (s *lifecycle) noteEnd(j *job, t *taskSet, state TaskState, r record) {
	s.noteEndAs(j, t, state, r, &r)
}

// noteEndAs is noteEnd with another record for the event.
func (s *lifecycle) noteEndAs(j *job, t *taskSet, state TaskState, r record, told *record) {
	s.sites[j.owner].use.tasks--
	s.keepRecord(j, t, r)
	t.addRun(run{from: r.task, to: r.task + 1, state: state, exit: r.exit, endedMs: -1})
	s.tellRecord(EventTaskEnded, j, told, EndingOf(state))
	if t.why == "" && state != TaskSucceeded && r.detail != "" {
		t.why = r.detail
	}
}

// endJob ends a job whose tasks have all ended.
func (s *lifecycle) endJob(seq uint64, j *job) {
	if j.over() || j.tasks == nil || j.tasks.endedTasks() < j.count {
		return
	}
	j.endedMs = s.time
	if j.tasks.gating() != nil {
		j.set(s.epoch).seldom.gating = nil // it is empty
	}
	s.tellJob(EventJobEnded, j)
	s.retire(seq, j)
}
