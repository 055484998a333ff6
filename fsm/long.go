package fsm

import "slices"

// Work that one entry may leave to the next ones, in this order: stop bounds that have
// passed, attempts that outlived their estimates, chores, matching, the search for
// reservations. While any is left, entries without commands move no log time: they are
// still the same moment, so that what comes of it is what one long entry would give.

// chore is a command's work on everything that a site has or that a job is, once its
// decision has been taken: the state already says lost, left, registered, cancelled.
// Chores are done in the order of their commands, and nothing is matched before all are.
type chore struct {
	kind choreKind
	site int32
	// limit is nextSeq when it began: later jobs are none of its business.
	limit uint64
	// The first that it has not done: a job, or a task of one. choreCancel: seq is its job.
	// While seq is 0, task counts what has been gathered: see State.gather.
	seq  uint64
	task uint32
}

type choreKind uint8

const (
	choreAway   choreKind = iota // take what a site ran out of its hands
	choreAnswer                  // settle what a registration did not name, or as lost
	choreOwn                     // end what a site that departs for good ran for itself
	choreJobs                    // then end what it has waiting
	choreCancel                  // stop and end a job
	choreDoubt                   // return what a suspected site runs for jobs that want it at a hint
	choreTrust                   // give a site that is heard again its attempts back
	lastChore   = choreTrust
)

// Pending reports whether work is left for the next entries. The leader then orders
// one at once, an empty one if nothing was proposed.
func (s *State) Pending() bool { return s.unfinished() || len(s.crowded) > 0 || s.isAged() }

// unfinished is Pending without jobs that are to leave: those wait for nothing, and
// nothing waits for them.
func (s *State) unfinished() bool {
	return len(s.chores) > 0 || s.phase != matched || s.search != nil || s.expiring() || s.prolonging
}

// PendingWork counts what is left for the next entries: each chore, and one each for
// stop bounds, attempts that outlived their estimates, the begin of a policy, the match,
// the search for reservations and jobs that are to leave. 0 unless Pending.
func (s *State) PendingWork() int {
	n := len(s.chores)
	for _, left := range [...]bool{
		s.expiring(), s.prolonging, s.beginning(), s.phase != matched, s.search != nil, len(s.crowded) > 0 || s.isAged(),
	} {
		if left {
			n++
		}
	}
	return n
}

// matchesLater reports whether work is left that comes before matching.
func (s *State) matchesLater() bool {
	return len(s.chores) > 0 || s.expiring() || s.prolonging || s.beginning()
}

// beginning reports whether a policy by projected waits has not all entered yet.
func (s *ranking) beginning() bool { return s.waits != nil && s.waits.limit > 0 }

// expiring reports whether an attempt is due and still to be settled.
func (s *attemptTable) expiring() bool {
	return s.due.Len() > 0 && s.attempts.Get(*s.due.First()).dueMs() <= s.time
}

// hasChore reports whether work on a site is left. Meanwhile it may have attempts that
// are neither its own nor withdrawn, or tasks that wait though it is gone.
func (s *State) hasChore(site int32) bool {
	return slices.ContainsFunc(s.chores, func(c chore) bool { return c.kind != choreCancel && c.site == site })
}

// undertake adds a chore, and does what it can of it now.
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

// hintLooks is among how many of the latest chores a hint looks for its opposite: half a
// million jobs may be being cancelled while a member toggles ten thousand times.
const hintLooks = 256

// hint undertakes a doubt of a site or its end. If the site's latest chore is the
// opposite one, one of the latest of all, and has not begun, neither is done: who
// toggles leaves two such chores at most.
func (s *State) hint(x *site, k choreKind) {
	for i := len(s.chores) - 1; i >= max(0, len(s.chores)-hintLooks); i-- {
		s.steps.used += stepLook
		c := &s.chores[i]
		if c.kind == choreCancel || c.site != x.id {
			continue
		}
		if (c.kind == choreDoubt || c.kind == choreTrust) && c.kind != k && c.seq == 0 {
			s.forgo(i)
			return
		}
		break
	}
	s.undertake(chore{kind: k, site: x.id})
}

// forgo drops a chore undone.
func (s *State) forgo(i int) {
	if i == 0 {
		s.ungather()
	}
	if s.chores = slices.Delete(s.chores, i, i+1); len(s.chores) == 0 {
		s.chores = nil
	}
}

// workOff does chores until none is left or the entry has done its part; at least
// one step of one chore.
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

// advanceChore does one step of a chore; false: there was none left.
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
		for s.left.Len() > 0 && s.left.First().taskKey == key { // all of a task at once: c knows no place between
			at := s.left.Pop()
			a := s.attempts.Get(at.slot)
			if at == last || a == nil || a.seq != key.seq || a.task != key.task || a.attempt != at.attempt || a.site != c.site {
				continue // it has ended meanwhile, or came twice
			}
			last = at
			c.seq, c.task = key.seq, key.task+1
			s.steps.used += stepSort
			s.treat(c.kind, at.slot)
			done = true
		}
		if done {
			return true
		}
	}
	return false
}

// treat does to one attempt what a chore is for.
func (s *lifecycle) treat(k choreKind, slot uint64) {
	a := s.attempts.Get(slot)
	if a.phase == phaseLeft {
		s.treatLeft(k, slot)
		return
	}
	own := s.jobs.Get(a.seq).owner == a.site
	switch k {
	case choreAway:
		switch {
		case a.phase == phaseAwaitingBound, a.phase == phaseAway: // already out of its hands: lost again before its registration was acted on
		case !own || a.phase == phaseStopping:
			s.lost(slot)
		default:
			s.shelve(slot, phaseAway)
		}
	case choreAnswer:
		s.answer(slot)
	case choreOwn:
		if own { // of others, and dying: its owner gets it back
			s.endOwn(slot)
		}
	case choreDoubt:
		s.doubt(slot)
	case choreTrust, choreJobs, choreCancel:
	}
}

// endOwn ends what a site that departs for good ran for itself.
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

// endSome ends some of what waits of the next job of a site whose departure is over.
func (s *lifecycle) endSome(c *chore) bool {
	if s.sites[c.site].waiting == 0 { // or who comes and leaves again could have all jobs looked at each time
		return false
	}
	open := &s.sites[c.site].openSeqs
	for p := range open.From(open.Search(func(o *uint64) bool { return *o >= c.seq })) {
		seq := *p
		if seq >= c.limit {
			break
		}
		s.steps.used += stepLook
		if c.seq = seq; s.jobs.Get(seq).waiting() > 0 {
			s.endWaiting(seq, TaskLost, ownerLeft)
			return true
		}
		if c.seq++; s.steps.spent() {
			return true
		}
	}
	return false
}

// cancelSome stops the next live attempt of a job, or ends some of what waits of it.
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
		if c.task++; j.tasks != nil {
			if r, ok := j.tasks.findRun(task); ok {
				c.task = r.to
			}
		}
		if s.steps.spent() {
			return true
		}
	}
	if j.waiting() == 0 {
		return false
	}
	s.endWaiting(c.seq, TaskCancelled, s.cancelWhy(j))
	return true
}
