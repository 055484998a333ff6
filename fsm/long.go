package fsm

import (
	"cmp"
	"slices"
)

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

// matchesLater reports whether work is left that comes before matching.
func (s *State) matchesLater() bool {
	return len(s.chores) > 0 || s.expiring() || s.prolonging || s.beginning()
}

// beginning reports whether a policy by projected waits has not all entered yet.
func (s *State) beginning() bool { return s.waits != nil && s.waits.limit > 0 }

// expiring reports whether an attempt is due and still to be settled.
func (s *State) expiring() bool {
	return len(s.due) > 0 && s.attempts.get(s.due[0]).dueMs() <= s.time
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

// hint undertakes a doubt of a site or its end. If the site's latest chore is the
// opposite one, and has not begun, neither is done: who toggles leaves two such chores
// at most.
func (s *State) hint(x *site, k choreKind) {
	for i := len(s.chores) - 1; i >= 0; i-- {
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
		s.left = nil
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
	s.left = nil
	switch c.kind {
	case choreOwn:
		c.kind, c.seq, c.task = choreJobs, 0, 0
		return
	case choreAway:
		s.sweep(s.sites[c.site])
	case choreCancel:
		delete(s.cancelling, c.seq)
	case choreAnswer:
		s.sites[c.site].holds = nil
	case choreJobs, choreDoubt, choreTrust:
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
	for s.left == nil || len(s.left) > 0 {
		if s.left == nil {
			if c.seq == 0 { // it begins; one that goes on sorts again on a restored replica only, so that cannot count
				s.steps.used += uint64(s.sites[c.site].live.n) * stepSort
			}
			s.left = s.attemptsFrom(c)
			continue
		}
		key, done := s.left[0].taskKey, false
		for len(s.left) > 0 && s.left[0].taskKey == key { // all of a task at once: c knows no place between
			at := s.left[0]
			s.left = s.left[1:]
			a := s.attempts.get(at.slot)
			if a == nil || a.seq != key.seq || a.task != key.task || a.attempt != at.attempt || a.site != c.site {
				continue // it has ended meanwhile
			}
			c.seq, c.task = key.seq, key.task+1
			s.steps.used += stepLook
			s.treat(c.kind, at.slot)
			done = true
		}
		if done {
			return true
		}
	}
	return false
}

// pending is an attempt that a chore has not treated yet.
type pending struct {
	taskKey
	attempt uint32
	slot    uint64
}

// attemptsFrom returns the attempts at a chore's site from its position on, by arrival
// of the job, task and attempt: what is live, and leftovers. Nothing is added before the chore is done, for nothing is matched.
func (s *State) attemptsFrom(c *chore) []pending {
	x := s.sites[c.site]
	keys := make([]pending, 0, x.live.n)
	for at := x.live.last; at != 0; {
		a := s.attempts.get(at - 1)
		if a.seq > c.seq || a.seq == c.seq && a.task >= c.task {
			keys = append(keys, pending{taskKey{a.seq, a.task}, a.attempt, at - 1})
		}
		at = a.prev
	}
	slices.SortFunc(keys, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.task, b.task), cmp.Compare(a.attempt, b.attempt))
	})
	return keys
}

// treat does to one attempt what a chore is for.
func (s *State) treat(k choreKind, slot uint64) {
	a := s.attempts.get(slot)
	if a.way == wayLeft {
		s.treatLeft(k, slot)
		return
	}
	own := s.jobs.get(a.seq).owner == a.site
	switch k {
	case choreAway:
		switch {
		case a.way == wayDying: // already out of its hands
		case !own || a.way == wayStopping:
			s.lost(slot)
		default:
			s.shelve(slot, wayAway)
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
func (s *State) endOwn(slot uint64) {
	a := *s.attempts.get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	r.detail = ownerLeft
	s.dropAttempt(slot)
	s.sites[a.site].taken = s.index
	s.endTask(a.seq, TaskLost, r)
	s.noteNotRun(&a)
}

// endSome ends some of what waits of the next job of a site whose departure is over.
func (s *State) endSome(c *chore) bool {
	if s.sites[c.site].waiting == 0 { // or who comes and leaves again could have all jobs looked at each time
		return false
	}
	for seq := range s.sites[c.site].openSeqs.from(c.seq) {
		if seq >= c.limit {
			break
		}
		s.steps.used += stepLook
		if c.seq = seq; s.jobs.get(seq).waiting() > 0 {
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
func (s *State) cancelSome(c *chore) bool {
	j := s.jobs.get(c.seq)
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
			if i, ok := j.tasks.findRun(task); ok {
				c.task = j.tasks.runs[i].to
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
