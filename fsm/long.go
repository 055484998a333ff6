package fsm

import "slices"

// One entry may leave work to the next ones, in this order: stop bounds that have passed, attempts that
// outlived their estimates, chores, matching, the search for reservations. While any is left, entries
// without commands do not move the log's time: they are still the same moment, so that the result is that
// of one long entry.

// chore is a command's work on everything that a site has or that a job is, after the command has been
// decided: the state already says lost, left, registered, cancelled. Chores are done in the order of their
// commands, and nothing is matched before all are done.
type chore struct {
	kind choreKind
	site int32
	// limit is nextSeq when the chore began: it does not concern later jobs.
	limit uint64
	// seq and task are the first that it has not done: a job, or a task of one. With choreCancel seq
	// is its job. While seq is 0, task counts what has been gathered: see State.gather.
	seq  uint64
	task uint32
}

type choreKind uint8

const (
	choreAway   choreKind = iota // take what a site ran from it
	choreAnswer                  // settle as lost what a registration did not name, or named as lost
	choreOwn                     // end what a permanently departing site ran for itself
	choreJobs                    // then end its waiting tasks
	choreCancel                  // stop and end a job
	choreDoubt                   // requeue what a suspected site runs for jobs that want it at a hint
	choreTrust                   // return the attempts of a site that is heard again
	lastChore   = choreTrust
)

// Pending reports whether work is left for the next entries. Then the leader orders an entry at once, an
// empty one if nothing was proposed.
func (s *State) Pending() bool { return s.unfinished() || len(s.crowded) > 0 || s.isAged() }

// unfinished is Pending without the jobs that are to leave: those wait for nothing, and nothing waits for
// them.
func (s *State) unfinished() bool {
	return len(s.chores) > 0 || s.phase != matched || s.search != nil || s.expiring() || s.prolonging
}

// PendingWork counts what is left for the next entries: each chore, and one each for stop bounds, attempts
// that outlived their estimates, the beginning of a policy, the match, the search for reservations, and
// jobs that are to leave. It is 0 unless Pending.
func (s *State) PendingWork() int {
	n := len(s.chores)
	for _, left := range [...]bool{
		s.expiring(), s.prolonging, s.beginning(), s.phase != matched, s.search != nil,
		len(s.crowded) > 0 || s.isAged(),
	} {
		if left {
			n++
		}
	}
	return n
}

// matchesLater reports whether work is left that must be done before matching.
func (s *State) matchesLater() bool {
	return len(s.chores) > 0 || s.expiring() || s.prolonging || s.beginning()
}

// beginning reports whether a policy of projected waits has not yet taken in all tasks.
func (s *ranking) beginning() bool { return s.waits != nil && s.waits.limit > 0 }

// expiring reports whether an attempt is due and not yet settled.
func (s *attemptTable) expiring() bool {
	return s.due.Len() > 0 && s.attempts.Get(*s.due.First()).dueMs() <= s.time
}

// hasChore reports whether work on a site is left. Meanwhile the site may have attempts that are neither
// its own nor withdrawn, or tasks that wait although it is gone.
func (s *State) hasChore(site int32) bool {
	return slices.ContainsFunc(s.chores, func(c chore) bool { return c.kind != choreCancel && c.site == site })
}

// undertake adds a chore and does what it can of it now.
func (s *State) undertake(c chore) {
	c.limit = s.nextSeq
	if c.kind == choreCancel {
		s.cancelling[c.seq] = true
	}
	s.chores = append(s.chores, c)
	if len(s.chores) == 1 && !s.steps.spent() {
		s.workOff()
	}
}

// hintLooks is how many of the latest chores a hint searches for its opposite: half a million jobs may be
// being cancelled while a member toggles ten thousand times.
const hintLooks = 256

// hint adds a chore for a doubt of a site or its end. If the site's latest chore is the opposite one, is
// among the latest of all, and has not begun, neither is done: a toggling member leaves at most two such
// chores.
func (s *State) hint(x *site, k choreKind) {
	for i := len(s.chores) - 1; i >= max(0, len(s.chores)-hintLooks); i-- {
		s.steps.used += stepLook
		c := &s.chores[i]
		if c.kind == choreCancel || c.site != x.id {
			continue
		}
		if (c.kind == choreDoubt || c.kind == choreTrust) && c.kind != k && c.seq == 0 {
			s.dropChore(i)
			return
		}
		break
	}
	s.undertake(chore{kind: k, site: x.id})
}

// dropChore drops a chore without doing it.
func (s *State) dropChore(i int) {
	if i == 0 {
		s.ungather()
	}
	if s.chores = slices.Delete(s.chores, i, i+1); len(s.chores) == 0 {
		s.chores = nil
	}
}

// workOff does chores until none is left or the entry has used its steps; at least one step of one chore.
func (s *State) workOff() {
	for len(s.chores) > 0 {
		c := &s.chores[0]
		for s.advanceChore(c) {
			if s.steps.spent() {
				return
			}
		}
		s.finishChore()
		if s.steps.spent() {
			return
		}
	}
}

// finishChore drops the first chore, or begins its second half.
func (s *State) finishChore() {
	c := &s.chores[0]
	s.ungather()
	switch c.kind {
	case choreOwn:
		c.kind, c.seq, c.task = choreJobs, 0, 0
		return
	case choreCancel:
		delete(s.cancelling, c.seq)
	case choreAnswer:
		s.sites[c.site].holds = nil
	case choreAway, choreJobs, choreDoubt, choreTrust:
	}
	if s.chores = s.chores[1:]; len(s.chores) == 0 {
		s.chores = nil
	}
}

// advanceChore does one step of a chore. It returns false if there was none left.
func (s *State) advanceChore(c *chore) bool {
	switch c.kind {
	case choreCancel:
		return s.cancelSome(c)
	case choreJobs:
		return s.endSome(c)
	case choreAway, choreAnswer, choreOwn, choreDoubt, choreTrust:
	}
	if !s.gathered && !s.gather(c) {
		return true
	}
	for s.left.Len() > 0 {
		key, last, done := s.left.First().taskKey, pending{}, false
		for s.left.Len() > 0 && s.left.First().taskKey == key { // all of a task at once: c has no position within one
			at := s.left.Pop()
			a := s.attempts.Get(at.slot)
			if at == last || a == nil || a.site != c.site ||
				a.seq != key.seq || a.task != key.task || a.attempt != at.attempt {
				continue // it has ended meanwhile, or came twice
			}
			last = at
			c.seq, c.task = key.seq, key.task+1
			s.steps.used += stepSort
			s.applyChore(c.kind, at.slot)
			done = true
		}
		if done {
			return true
		}
	}
	return false
}

// applyChore applies a chore to one attempt.
func (s *lifecycle) applyChore(k choreKind, slot uint64) {
	a := s.attempts.Get(slot)
	if a.phase == phaseLeft {
		s.applyChoreToLeft(k, slot)
		return
	}
	own := s.jobs.Get(a.seq).owner == a.site
	switch k {
	case choreAway:
		switch {
		case a.phase == phaseAwaitingBound, a.phase == phaseAway:
			// Its site has already lost it: the site was lost again before its registration was acted on.
		case !own:
			s.boundByLease(slot)
			s.lost(slot)
		case a.phase == phaseStopping:
			s.lost(slot)
		default:
			s.shelve(slot, phaseAway)
		}
	case choreAnswer:
		s.answer(slot)
	case choreOwn:
		if own { // otherwise it is dying, and its owner gets it back
			s.endOwn(slot)
		}
	case choreDoubt:
		s.doubt(slot)
	case choreTrust, choreJobs, choreCancel:
	}
}

// endOwn ends what a permanently departing site ran for itself.
func (s *lifecycle) endOwn(slot uint64) {
	a := *s.attempts.Get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	r.detail = ownerLeft
	s.dropAttempt(slot)
	s.sites[a.site].taken = s.index
	s.endTask(a.seq, TaskLost, r)
	s.noteNotRun(&a)
}

// endSome ends some waiting or held tasks, or one that is delivering, of the next job of a site whose departure is
// over.
func (s *lifecycle) endSome(c *chore) bool {
	x := s.sites[c.site]
	// Else repeated leaving would examine all its jobs each time.
	if x.waiting == 0 && x.held == 0 && x.delivering.Len() == 0 {
		return false
	}
	open := &x.openSeqs
	for p := range open.From(open.Search(func(o *uint64) bool { return *o >= c.seq })) {
		seq := *p
		if seq >= c.limit {
			break
		}
		s.steps.used += stepLook
		j := s.jobs.Get(seq)
		if c.seq = seq; j.waiting() > 0 || j.heldTasks() > 0 {
			s.endWaiting(seq, TaskLost, ownerLeft)
			return true
		}
		if d := j.tasks.delivering().First(); d != nil {
			s.endDelivery(seq, d.task, TaskLost, ownerLeft)
			return true
		}
		if c.seq++; s.steps.spent() {
			return true
		}
	}
	return false
}

// cancelSome stops the next live attempt of a job, ends the next task that is delivering, or ends some of its waiting
// and held tasks.
func (s *lifecycle) cancelSome(c *chore) bool {
	j := s.jobs.Get(c.seq)
	if j == nil || j.over() {
		return false
	}
	for c.task < j.next {
		s.steps.used += stepLook
		task := c.task
		if slot, ok := s.live[taskKey{c.seq, task}]; ok {
			c.task++
			s.steps.used += stepStop
			s.stop(slot, s.cancelWhy(j))
			return true
		}
		if j.tasks.findDelivery(task) != nil {
			c.task++
			s.endDelivery(c.seq, task, TaskCancelled, s.cancelWhy(j))
			return true
		}
		c.task++
		if to, ok := j.standsFrom(task); ok {
			c.task = to
		}
		if s.steps.spent() {
			return true
		}
	}
	if j.waiting() == 0 && j.heldTasks() == 0 {
		return false
	}
	s.endWaiting(c.seq, TaskCancelled, s.cancelWhy(j))
	return true
}
