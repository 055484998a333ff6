package fsm

import (
	"cmp"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// heldWhy is the reason of what its owner has not released.
const heldWhy = "held: its owner has not let it go"

// TaskRun is tasks [From, To) of a job.
type TaskRun struct{ From, To uint32 }

// HeldTask is a task that is held after an attempt: its owner is to release it, or to end it.
type HeldTask struct {
	Job                                command.JobID
	Task                               uint32
	Attempt, Failures, Losses, Orphans uint32 // Attempt is the last one
	End                                Ending // of that attempt; NoEnding: it was held while it waited
	ExitCode, Signal                   int32
	Site                               string // where that attempt was; "" = not kept
	Since                              uint64 // entry with which it became held
	SinceMs                            int64  // log time of that entry
}

// GatesView is what stands where of a job, by task.
type GatesView struct {
	Gated bool
	// Scattered: it is not gated, and cannot become so, since too many of its tasks were cancelled before their turn.
	Scattered bool
	Held      []TaskRun // never ran, and are held
	// Queued never ran, were released, and wait. Of a job that is not gated they are not told.
	Queued   []TaskRun
	Returned []HeldTask
	Next     uint32 // the task with which to go on, 0 = that was all
}

// ReturnedTasks returns an owner's tasks that are held after an attempt, in the order in which that began, then by job
// and task.
func (s *views) ReturnedTasks(owner string) []HeldTask {
	x := s.byName[owner]
	if x == nil {
		return nil
	}
	return s.viewReturned(x, 0)
}

// ReturnedSince returns those tasks of an owner that became held after an entry, in the same order. The cost depends on
// what has become so.
//
// What left by the owner's own Release is not told. If anything else left since then (its user has cancelled it, or an
// earlier attempt of it has succeeded), or the entry is not in this state's past, whole is true and all are returned:
// what is not among them is none any more.
func (s *views) ReturnedSince(owner string, entry uint64) (changed []HeldTask, whole bool) {
	x := s.byName[owner]
	switch {
	case x == nil:
		return nil, true
	case entry < x.againLeft || entry > s.index:
		return s.viewReturned(x, 0), true
	}
	return s.viewReturned(x, entry), false
}

// ReturnedChange returns the number of the last entry that changed what ReturnedTasks returns. It is 0 for an unknown
// site. After Restore it is the restored entry's number.
func (s *views) ReturnedChange(owner string) uint64 {
	if x := s.byName[owner]; x != nil {
		return x.againAt
	}
	return 0
}

func (s *views) viewReturned(x *site, after uint64) []HeldTask {
	from := x.again.Search(func(k *deliveryKey) bool { return k.since > after })
	var out []HeldTask
	for k := range x.again.From(from) {
		j := s.jobs.Get(k.seq)
		out = append(out, s.viewHeldTask(j, j.tasks.findAgain(k.task)))
	}
	return out
}

func (s *views) viewHeldTask(j *job, b *heldTask) HeldTask {
	v := HeldTask{
		Job: s.idOf(j), Task: b.task, Attempt: b.attempt, Failures: b.failures, Losses: b.losses.bySite(),
		Orphans: b.losses.orphans(), End: b.end, ExitCode: b.exit, Signal: b.signal,
		Since: b.since, SinceMs: b.queuedMs,
	}
	if b.last != nil && b.last.site >= 0 {
		v.Site = s.sites[b.last.site].name
	}
	return v
}

// Gates returns what stands where of a job's tasks from one on; at most most runs and tasks of each kind. It returns
// false if the job is not known.
func (s *views) Gates(id command.JobID, from uint32, most int) (GatesView, bool) {
	seq := s.findJob(id)
	if seq == 0 {
		return GatesView{}, false
	}
	j := s.jobs.Get(seq)
	v := GatesView{Gated: j.gated, Scattered: !j.gated && j.holes(command.MaxGateHoles) > command.MaxGateHoles}
	end := j.count
	v.Held, end = runsFrom(j.heldSpans(), from, end, most)
	v.Queued, end = runsFrom(j.tasks.released(), from, end, most)
	l := j.tasks.again()
	for b := range l.From(l.Search(func(b *heldTask) bool { return b.task >= from })) {
		if b.task >= end {
			break
		}
		if len(v.Returned) == most {
			end = b.task
			break
		}
		v.Returned = append(v.Returned, s.viewHeldTask(j, b))
	}
	v.Held, v.Queued = runsBefore(v.Held, end), runsBefore(v.Queued, end)
	if end < j.count {
		v.Next = end
	}
	return v, true
}

// runsFrom returns at most most runs of tasks in [from, to), and up to where they are all.
func runsFrom(l *store.Sorted[span], from, to uint32, most int) (runs []TaskRun, end uint32) {
	for v := range l.From(l.Search(func(v *span) bool { return v.to > from })) {
		if v.from >= to {
			break
		}
		if len(runs) == most {
			return runs, v.from
		}
		runs = append(runs, TaskRun{max(from, v.from), min(to, v.to)})
	}
	return runs, to
}

// runsBefore returns the parts of runs that are before a task.
func runsBefore(runs []TaskRun, end uint32) []TaskRun {
	for len(runs) > 0 && runs[len(runs)-1].From >= end {
		runs = runs[:len(runs)-1]
	}
	if n := len(runs); n > 0 {
		runs[n-1].To = min(runs[n-1].To, end)
	}
	return runs
}

// viewGated fills in a task that is held, or was released and never ran.
func (s *views) viewGated(v *TaskView, j *job) {
	if b := j.tasks.findAgain(v.Index); b != nil {
		if b.last != nil {
			s.viewRecord(v, b.last)
		}
		if v.State, v.Attempt, v.Reason = Held, b.attempt, heldWhy; b.last != nil {
			v.Reason = cmp.Or(b.last.detail, heldWhy)
		}
		v.QueuedMs, v.EndedMs, v.ExitCode, v.Signal = b.queuedMs, -1, b.exit, b.signal
		v.Failures, v.Losses, v.Orphans = b.failures, b.losses.bySite(), b.losses.orphans()
		return
	}
	if at := findSpan(j.tasks.released(), v.Index); at != nil {
		v.QueuedMs = at.queuedMs
		return
	}
	if findSpan(j.heldSpans(), v.Index) != nil {
		v.State, v.Reason = Held, heldWhy
	}
}

// passOverGated is passOver for a job that is gated, of which a task was released or has ended.
func (s *views) passOverGated(j *job, states TaskStates, i uint32) uint32 {
	waits, held := Queued, Held
	if !s.sites[j.owner].present() {
		waits, held = Withdrawn, Withdrawn
	}
	at, ended := j.tasks.findRun(i)
	switch {
	case ended && !states.Has(at.state):
		return at.to
	case ended:
		return i
	}
	if v := findSpan(j.tasks.released(), i); v != nil && !states.Has(waits) {
		return v.to
	}
	if v := findSpan(j.heldSpans(), i); v != nil && !states.Has(held) {
		return v.to
	}
	return i
}
