package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// A job that is gated has its tasks held until its owner releases them. Its range is empty from the beginning (next is
// count): a task that never ran stands in a span of held tasks or of released ones, which wait. One that ran and may
// run again is held as well, with what its owner needs to know of it. Why it may run, and when, its owner knows alone.

// gating is where tasks of a gated job stand besides the places that all jobs have.
type gating struct {
	held     spans                  // never ran, and may not wait
	released spans                  // never ran, and wait
	again    store.Sorted[heldTask] // ran, and may not wait, by task
}

// span is tasks [from, to) that never ran. Those that wait have done so since queuedMs; of held ones it is 0.
type span struct {
	from, to uint32
	queuedMs int64
}

// spans are disjoint spans by task. Invariant: neighbours with equal times are joined.
type spans struct {
	list  store.Sorted[span]
	tasks uint32
}

// heldTask is a task that is held after an attempt.
type heldTask struct {
	backTask // Invariant: attempt > 0; queuedMs is when it became held
	exit     int32
	signal   int32
	end      Ending // of that attempt; NoEnding if it was held while it waited
	since    uint64 // entry with which it became held
	// last is what its attempt left, for the record of its end. nil = not kept: the job is too large, or its owner has
	// as many records as it may.
	last *record
}

// gating returns where tasks of a gated job stand, for reading only; t may be nil.
func (t *taskSet) gating() *gating {
	if t == nil || t.seldom == nil {
		return nil
	}
	return t.seldom.gating
}

// released returns the released tasks that wait and never ran, for reading only; t may be nil.
func (t *taskSet) released() *store.Sorted[span] {
	if g := t.gating(); g != nil {
		return &g.released.list
	}
	return nil
}

// again returns the tasks that are held after an attempt, for reading only; t may be nil.
func (t *taskSet) again() *store.Sorted[heldTask] {
	if g := t.gating(); g != nil {
		return &g.again
	}
	return nil
}

// gates returns the gating of a gated job for writing.
//
// REQUIRES: t came from job.set.
func (t *taskSet) gates() *gating {
	if t.rare().gating == nil {
		t.seldom.gating = &gating{}
	}
	return t.seldom.gating
}

// clone returns a copy that shares nothing with g.
func (g *gating) clone() *gating {
	if g == nil {
		return nil
	}
	dup := *g
	dup.held.list, dup.released.list, dup.again = g.held.list.Clone(), g.released.list.Clone(), g.again.Clone()
	return &dup
}

// heldTasks returns how many of the job's tasks are held.
func (j *job) heldTasks() uint32 {
	switch g := j.tasks.gating(); {
	case j.gated && j.tasks == nil:
		return j.count
	case g != nil:
		return g.held.tasks + uint32(g.again.Len())
	}
	return 0
}

// heldSpans returns the tasks of a job that are held and never ran, for reading only.
func (j *job) heldSpans() *store.Sorted[span] {
	if j.gated && j.tasks == nil {
		var all store.Sorted[span]
		all.Insert(all.End(), span{to: j.count})
		return &all
	}
	if g := j.tasks.gating(); g != nil {
		return &g.held.list
	}
	return nil
}

// findSpan returns the span in which a task stands, nil if there is none; l may be nil.
func findSpan(l *store.Sorted[span], task uint32) *span {
	v := l.Get(l.Search(func(v *span) bool { return v.to > task }))
	if v == nil || v.from > task {
		return nil
	}
	return v
}

// firstIn returns the part of [from, to) that stands in the first span that reaches into it, false if none does.
func firstIn(l *store.Sorted[span], from, to uint32) (span, bool) {
	v := l.Get(l.Search(func(v *span) bool { return v.to > from }))
	if v == nil || v.from >= to {
		return span{}, false
	}
	return span{max(from, v.from), min(to, v.to), v.queuedMs}, true
}

// add adds a span, joined with neighbours of the same time.
//
// REQUIRES: none of its tasks is in the list.
func (l *spans) add(v span) {
	l.tasks += v.to - v.from
	at := l.list.Search(func(o *span) bool { return o.to > v.from })
	left, right := l.list.Get(l.list.Prev(at)), l.list.Get(at)
	if left != nil && (left.to != v.from || left.queuedMs != v.queuedMs) {
		left = nil
	}
	if right != nil && (right.from != v.to || right.queuedMs != v.queuedMs) {
		right = nil
	}
	switch {
	case left != nil && right != nil:
		left.to = right.to
		l.list.Remove(at)
	case left != nil:
		left.to = v.to
	case right != nil:
		right.from = v.from
	default:
		l.list.Insert(at, v)
	}
}

// cut removes tasks that stand in one span.
func (l *spans) cut(v span) {
	l.tasks -= v.to - v.from
	at := l.list.Search(func(o *span) bool { return o.to > v.from })
	o := l.list.Get(at)
	switch {
	case o.from == v.from && o.to == v.to:
		l.list.Remove(at)
	case o.from == v.from:
		o.from = v.to
	case o.to == v.to:
		o.to = v.from
	default:
		before := span{o.from, v.from, o.queuedMs}
		o.from = v.to
		l.list.Insert(at, before)
	}
}

// seekAgain returns where a task that is held after an attempt is or would be, and the task, nil if there is none; t
// may be nil.
func (t *taskSet) seekAgain(task uint32) (store.Place, *heldTask) {
	l := t.again()
	at := l.Search(func(b *heldTask) bool { return b.task >= task })
	if b := l.Get(at); b != nil && b.task == task {
		return at, b
	}
	return at, nil
}

// findAgain returns a task that is held after an attempt, or nil; t may be nil.
func (t *taskSet) findAgain(task uint32) *heldTask {
	_, b := t.seekAgain(task)
	return b
}

// standsFrom returns where the run of ended, held or released tasks ends in which a task stands; false: it is in none.
func (j *job) standsFrom(task uint32) (to uint32, ok bool) {
	if j.tasks == nil {
		return j.count, j.gated
	}
	if r, ended := j.tasks.findRun(task); ended {
		return r.to, true
	}
	g := j.tasks.gating()
	if g == nil {
		return 0, false
	}
	for _, l := range [...]*store.Sorted[span]{&g.held.list, &g.released.list} {
		if v := findSpan(l, task); v != nil {
			return v.to, true
		}
	}
	return 0, false
}

// addHeld enters a task that is held after an attempt into its job and its owner's list.
func (s *jobTable) addHeld(seq uint64, j *job, b heldTask) {
	t := j.set(s.epoch)
	g := t.gates()
	at, _ := t.seekAgain(b.task)
	g.again.Insert(at, b)
	x, key := s.sites[j.owner], deliveryKey{b.since, seq, b.task}
	x.again.Insert(x.again.Search(func(o *deliveryKey) bool { return o.compare(key) > 0 }), key)
	x.againAt = s.index
	if b.last != nil {
		x.use.records++
	}
}

// dropHeld removes a task that is held after an attempt, and returns it.
//
// REQUIRES: there is one.
func (s *jobTable) dropHeld(seq uint64, j *job, task uint32) heldTask {
	t := j.set(s.epoch)
	at, p := t.seekAgain(task)
	b := *p
	t.seldom.gating.again.Remove(at)
	x, key := s.sites[j.owner], deliveryKey{b.since, seq, task}
	x.again.Remove(x.again.Search(func(o *deliveryKey) bool { return o.compare(key) >= 0 }))
	x.againAt = s.index
	if b.last != nil {
		x.use.records--
	}
	return b
}

// holdsAfter reports whether a task of a gated job is held again after such an end of its attempt: if it ran. What did
// not run is still released.
func holdsAfter(o command.Outcome) bool {
	switch o {
	case neverRan, declined, doubted, unopened, returned:
		return false
	case command.Succeeded, command.Failed, command.TimedOut, command.Stopped, command.Lost, command.Orphaned:
	}
	return true
}

// holdAgain has a task wait for its owner: its attempt is gone, and it may run again.
func (s *lifecycle) holdAgain(a *attempt, r record, o command.Outcome) {
	seq := a.seq
	j := s.mutJob(seq)
	b := heldTask{
		backTask: backTask{
			task: r.task, attempt: a.attempt, failures: r.failures, losses: r.losses, doubts: a.doubts,
			queuedMs: s.time,
		},
		exit: r.exit, signal: r.signal, end: endingOf(o), since: s.index,
	}
	if s.mayKeep(j) {
		b.last = &r
	}
	s.addHeld(seq, j, b)
	s.sites[j.owner].held++
	s.tellRecord(EventTaskHeld, j, &r, b.end)
}

// endRecord returns the record of a task that ends while it is held. What its last attempt ended with counts only if
// its owner calls that a failure.
func (b *heldTask) endRecord(now int64, state TaskState, why string) record {
	r := b.backTask.record(now)
	if b.last != nil {
		r = *b.last
		r.failures, r.losses = b.failures, b.losses
	}
	if r.exit, r.signal, r.detail = 0, 0, why; state == TaskFailed {
		r.exit, r.signal = b.exit, b.signal
	}
	return r
}
