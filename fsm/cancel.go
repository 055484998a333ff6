package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// ownerLeft is the reason of tasks that ended while they waited.
const ownerLeft = "owner left the federation"

// CancelledAt returns the reason of what was cancelled at a site's broker, by whoever it was.
func CancelledAt(site string) string { return "cancelled at " + site }

// askedAt returns the site at whose broker a Cancel was asked for.
func (s *jobTable) askedAt(owner *site, c *command.Cancel) *site {
	if x := s.byName[c.At]; x != nil {
		return x
	}
	return owner
}

// noteCancel records where the cancel of a whole job was first asked for.
func (s *lifecycle) noteCancel(owner *site, seq uint64, c *command.Cancel) {
	if t := s.mutJob(seq).set(s.epoch).rare(); t.cancel == 0 {
		t.cancel = uint32(s.askedAt(owner, c).id) + 1
	}
}

// cancelWhy returns the reason of a job's tasks that end because the whole job was cancelled.
func (s *jobTable) cancelWhy(j *job) string {
	if j.tasks.cancel() == 0 {
		return "cancelled"
	}
	return s.sites[j.tasks.cancel()-1].cancels
}

// cancel executes a Cancel: what waits ends at once; what is live is asked to stop and ends when its
// site reports so.
func (s *State) cancel(x *site, c *command.Cancel) command.Result {
	if c.Job.Site != x.name {
		return command.Result{Code: command.NotOwner}
	}
	seq := x.nums[c.Job.Num]
	switch {
	case seq == 0 && c.Job.Num != 0 && c.Job.Num <= x.maxNum && x.hasRetired(c.Job.Num):
		return command.Result{Code: command.AlreadyEnded}
	case seq == 0:
		return command.Result{Code: command.UnknownJob}
	case s.jobs.Get(seq).over():
		return command.Result{Code: command.AlreadyEnded}
	case c.Task < 0:
		s.noteCancel(x, seq, c)
		s.tellCancel(s.jobs.Get(seq), c.Task, s.cancelWhy(s.jobs.Get(seq)))
		if !s.cancelling[seq] {
			s.undertake(chore{kind: choreCancel, seq: seq})
		}
		return command.Result{}
	}
	return command.Result{Code: s.cancelTask(seq, uint32(c.Task), s.askedAt(x, c).cancels)}
}

// cancelTask ends or stops one task.
func (s *lifecycle) cancelTask(seq uint64, task uint32, why string) command.Code {
	j := s.mutJob(seq)
	if task >= j.count {
		return command.OutOfRange
	}
	if slot, ok := s.live[taskKey{seq, task}]; ok {
		s.tellCancel(j, int64(task), why)
		s.stop(slot, why)
		return command.OK
	}
	t := j.set(s.epoch)
	if at := t.findBack(task); at != nil {
		b := *at
		t.dropBack(task)
		s.closeDoubt(j, &b, doubtNone, why)
		s.dequeue(seq, j, 1)
		s.noteWithdrawn(j, 1, b.queuedMs)
		s.unholdIdle(seq, j)
		r := b.record(s.time)
		r.detail = why
		s.endTask(seq, TaskCancelled, r)
		return command.OK
	}
	if t.findDelivery(task) != nil { // its attempt has ended: there is nothing to stop
		s.endDelivery(seq, task, TaskCancelled, why)
		return command.OK
	}
	if j.gated {
		return s.cancelHeld(seq, j, task, why)
	}
	if task < j.next {
		return command.AlreadyEnded
	}
	if _, ended := t.findRun(task); task < j.next || ended {
		return command.AlreadyEnded
	}
	t.ahead++ // a hole in the range, skipped when the range reaches it
	r := record{
		task: task, site: -1, queuedMs: j.queuedMs, assignedMs: -1, startedMs: -1,
		endedMs: s.time, detail: why,
	}
	s.noteEnd(j, t, TaskCancelled, r)
	j.skip()
	s.dequeue(seq, j, 1)
	s.noteWithdrawn(j, 1, j.queuedMs)
	s.unholdIdle(seq, j)
	s.endJob(seq, j)
	return command.OK
}

// record returns what is known of a returned task that ends while it waits.
func (b *backTask) record(now int64) record {
	return record{
		task: b.task, attempt: b.attempt, failures: b.failures, losses: b.losses, site: -1,
		queuedMs: b.queuedMs, assignedMs: -1, startedMs: -1, endedMs: now,
	}
}

// endWaiting ends the waiting and held tasks of a job, or as many of them as the entry may.
//
// REQUIRES: some task waits or is held.
func (s *lifecycle) endWaiting(seq uint64, state TaskState, why string) {
	j := s.mutJob(seq)
	t := j.set(s.epoch)
	fresh := s.endFresh(j, t, state, why) + s.endReleased(seq, j, t, state, why)
	n := fresh + s.endBack(j, t, state, why, fresh > 0)
	held := s.endHeld(seq, j, t, state, why, n > 0)
	x := s.sites[j.owner]
	x.use.tasks -= uint64(n) + uint64(held)
	x.held -= uint64(held)
	if t.why == "" {
		t.why = why
	}
	if n > 0 {
		s.dequeue(seq, j, n)
		s.unholdIdle(seq, j)
	}
	s.endJob(seq, j)
}

// endFresh ends tasks that were never assigned, and returns how many.
func (s *lifecycle) endFresh(j *job, t *taskSet, state TaskState, why string) (n uint32) {
	for j.next < j.count && (n == 0 || !s.steps.spent()) { // between the holes
		to := j.count
		if r, _ := t.findRun(j.next); r != nil {
			to = r.from
		}
		s.steps.used += stepEnd
		t.addRun(run{from: j.next, to: to, state: state, endedMs: s.time})
		s.tellEnded(j, j.next, to, state, why)
		n += to - j.next
		j.next = to
		j.skip()
	}
	s.noteWithdrawn(j, int64(n), j.queuedMs)
	return n
}

// endBack ends returned tasks, and returns how many: at least one, unless the caller already did
// something.
func (s *lifecycle) endBack(j *job, t *taskSet, state TaskState, why string, did bool) (n uint32) {
	for ; t.back().Len() > 0 && (!did || !s.steps.spent()); did = true {
		b := *t.back().First()
		t.dropBack(b.task)
		s.closeDoubt(j, &b, doubtNone, why)
		s.steps.used += stepEnd
		s.noteWithdrawn(j, 1, b.queuedMs)
		if b.attempt > 0 {
			s.keepRecord(j, t, b.record(s.time))
		}
		t.addRun(run{from: b.task, to: b.task + 1, state: state, endedMs: s.time})
		s.tellEnded(j, b.task, b.task+1, state, why)
		n++
	}
	return n
}

// isStopping reports whether the end of an attempt was requested, even if the cancel of its job has not
// reached it yet.
func (s *lifecycle) isStopping(a *attempt) bool { return a.stopping() || s.cancelling[a.seq] }

// stop asks for the end of a live attempt; its capacity stays taken until its site reports. If the site is
// lost there is nobody to ask: the attempt ends at once or at its bound.
func (s *lifecycle) stop(slot uint64, why string) {
	a := s.attempts.Mut(slot, s.epoch)
	if a.stopping() {
		return
	}
	a.why = why
	switch a.phase {
	case phaseAway:
		a.phaseBefore = phaseStopping
		s.drop(slot, command.Lost)
	case phaseAwaitingBound:
		a.phaseBefore = phaseStopping
		s.touch(slot)
	case phaseAssigned, phaseRunning, phaseStopping:
		s.setPhase(slot, phaseStopping)
		s.touch(slot)
		s.tellAttempt(EventTaskStopping, s.attempts.Get(slot))
		if s.attempts.Get(slot).dueMs() <= s.time { // its bound has passed
			s.settleUnanswered(slot)
		}
	case phaseLeft: // it does not belong to a task any more
	}
}

// liveOf returns the slots of a job's live attempts, by task.
func (s *jobTable) liveOf(seq uint64) []uint64 {
	j := s.jobs.Get(seq)
	if j.tasks == nil {
		return nil
	}
	var slots []uint64
	var task uint32
	between := func(to uint32) { // between runs
		for ; task < min(to, j.next); task++ {
			if slot, ok := s.live[taskKey{seq, task}]; ok {
				slots = append(slots, slot)
			} else if j.gated {
				if after, ok := j.standsFrom(task); ok {
					task = after - 1
				}
			}
		}
	}
	for r := range j.tasks.runs.All() {
		between(r.from)
		task = r.to
	}
	between(j.next)
	return slots
}
