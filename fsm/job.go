package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// job is a submitted job. A job of a million tasks is this record and a few runs: tasks that were never
// assigned are the range [next, count).
type job struct {
	num         uint64
	entry       uint64 // the one that published it
	timeoutMs   int64
	createdMs   int64
	queuedMs    int64
	startedMs   int64 // −1 = not yet
	endedMs     int64 // −1 = not yet
	booked      int64 // estimated length of a task in quanta; only while State.waits
	class       *class
	payload     *payload
	tasks       *taskSet // nil until a task left the range
	owner       int32
	order       int32 // what its owner's queues sort by, greatest first: command.JobSpec.Order
	count       uint32
	next        uint32 // Invariant: only grows; tasks ≥ next wait, except tasks.ahead of them
	maxAttempts uint32
	onLoss      command.OnLoss
	delivers    bool // a task that succeeds elsewhere ends when its owner has its outputs: see delivery
	gated       bool // Invariant: then next is count; see gating
}

// taskSet holds what the range cannot: every task < next is live (in State.live), or in back, in delivering, in runs,
// or in gating.
// runs may also hold tasks ≥ next.
type taskSet struct {
	epoch   uint64
	seldom  *seldom              // nil while it would be empty
	runs    store.Sorted[run]    // ended, by from
	records store.Sorted[record] // of ended tasks, by task; small jobs only
	ends    [4]uint32            // ended tasks by state − TaskSucceeded
	live    [5]uint32            // live attempts by phase
	ahead   uint32               // ended tasks ≥ job.next; they are in runs
	why     string               // of the first bad end
}

// seldom holds what few jobs ever have.
type seldom struct {
	back       store.Sorted[backTask] // waiting again, by task
	delivering store.Sorted[delivery] // succeeded elsewhere, outputs on their way, by task
	bars       []bar                  // by site; never changed in place; some may be void
	gating     *gating                // of a gated job; nil = nothing is held, nor waits for the first time
	cancel     uint32                 // site's id + 1 where its cancel was first asked for; 0 = nowhere, or unknown
}

// backTask is a task that returned to the queue.
type backTask struct {
	task     uint32
	attempt  uint32 // the last one
	failures uint32
	losses   lossCount
	doubts   uint32 // as in attempt
	queuedMs int64
}

// run is a range of tasks that ended alike.
type run struct {
	from, to uint32 // [from, to)
	state    TaskState
	exit     int32
	endedMs  int64 // of ends without an attempt; −1 = see the record
}

// record is what GET tasks shows of an ended task.
type record struct {
	task, attempt, failures         uint32
	losses                          lossCount
	exit, signal                    int32
	site                            int32
	token                           uint64
	queuedMs, assignedMs, startedMs int64
	endedMs                         int64
	machine, detail                 string
	facts                           *facts // nil = none
}

// attemptPhase is how far a live attempt has come.
type attemptPhase uint8

const (
	phaseAssigned attemptPhase = iota
	phaseRunning
	phaseStopping
	phaseAway          // owner and executor are the same lost site
	phaseAwaitingBound // lost, but not certainly dead before its bound
	phaseLeft          // its task is settled: see leftover
)

// waiting returns the number of queued tasks.
func (j *job) waiting() uint32 {
	n := j.count - j.next
	if t := j.tasks; t != nil {
		if n -= t.ahead; t.seldom != nil {
			n += uint32(t.seldom.back.Len())
			if g := t.seldom.gating; g != nil {
				n += g.released.tasks
			}
		}
	}
	return n
}

// skip moves next past ended tasks.
func (j *job) skip() {
	t := j.tasks
	for t.ahead > 0 {
		r, ok := t.findRun(j.next)
		if !ok {
			return
		}
		t.ahead -= r.to - j.next
		j.next = r.to
	}
}

// over reports whether every task has ended.
func (j *job) over() bool { return j.endedMs >= 0 }

// set returns the job's task set for writing.
//
// REQUIRES: j came from State.mutJob.
func (j *job) set(epoch uint64) *taskSet {
	switch {
	case j.tasks == nil:
		j.tasks = &taskSet{epoch: epoch}
		if j.gated {
			j.tasks.gates().held.add(span{to: j.count})
		}
	case j.tasks.epoch != epoch:
		dup := *j.tasks
		dup.epoch = epoch
		dup.runs, dup.records = dup.runs.Clone(), dup.records.Clone()
		if dup.seldom != nil {
			few := *dup.seldom
			few.back, few.delivering = few.back.Clone(), few.delivering.Clone()
			few.gating = few.gating.clone()
			dup.seldom = &few
		}
		j.tasks = &dup
	}
	return j.tasks
}

// back returns the tasks that wait again, for reading only; t may be nil.
func (t *taskSet) back() *store.Sorted[backTask] {
	if t == nil || t.seldom == nil {
		return nil
	}
	return &t.seldom.back
}

// bars returns the bars against the job's tasks; t may be nil.
func (t *taskSet) bars() []bar {
	if t == nil || t.seldom == nil {
		return nil
	}
	return t.seldom.bars
}

// cancel returns where the job's cancel was asked for; t may be nil.
func (t *taskSet) cancel() uint32 {
	if t == nil || t.seldom == nil {
		return 0
	}
	return t.seldom.cancel
}

// rare returns the rarely used part, for writing.
func (t *taskSet) rare() *seldom {
	if t.seldom == nil {
		t.seldom = &seldom{}
	}
	return t.seldom
}

// seekBack returns where a task that waits again is or would be, and the task, nil if it does not wait
// again; t may be nil.
func (t *taskSet) seekBack(task uint32) (store.Place, *backTask) {
	back := t.back()
	at := back.Search(func(b *backTask) bool { return b.task >= task })
	if b := back.Get(at); b != nil && b.task == task {
		return at, b
	}
	return at, nil
}

// findBack returns a task that waits again, or nil; t may be nil.
func (t *taskSet) findBack(task uint32) *backTask {
	_, b := t.seekBack(task)
	return b
}

// addBack makes a task wait again.
func (t *taskSet) addBack(b backTask) {
	at, _ := t.seekBack(b.task)
	t.rare().back.Insert(at, b)
}

// dropBack removes a task from those that wait again.
func (t *taskSet) dropBack(task uint32) {
	at, _ := t.seekBack(task)
	t.seldom.back.Remove(at)
}

// findRun returns the run that holds task and true, otherwise the run behind it or nil.
func (t *taskSet) findRun(task uint32) (*run, bool) {
	r := t.runs.Get(t.runs.Search(func(r *run) bool { return r.to > task }))
	return r, r != nil && r.from <= task
}

func (r run) like(o run) bool {
	return r.state == o.state && r.exit == o.exit && r.endedMs == o.endedMs
}

// addRun adds a run of tasks that just ended, joined with equal neighbours.
func (t *taskSet) addRun(r run) {
	t.ends[r.state-TaskSucceeded] += r.to - r.from
	at := t.runs.Search(func(o *run) bool { return o.to > r.from })
	left, right := t.runs.Get(t.runs.Prev(at)), t.runs.Get(at)
	if left != nil && (left.to != r.from || !left.like(r)) {
		left = nil
	}
	if right != nil && (right.from != r.to || !right.like(r)) {
		right = nil
	}
	switch {
	case left != nil && right != nil:
		left.to = right.to
		t.runs.Remove(at)
	case left != nil:
		left.to = r.to
	case right != nil:
		right.from = r.from
	default:
		t.runs.Insert(at, r)
	}
}

// addRecord keeps an ended task's details.
func (t *taskSet) addRecord(r record) {
	t.records.Insert(t.records.Search(func(o *record) bool { return o.task > r.task }), r)
}

// findRecord returns an ended task's details, or nil.
func (t *taskSet) findRecord(task uint32) *record {
	r := t.records.Get(t.records.Search(func(r *record) bool { return r.task >= task }))
	if r != nil && r.task == task {
		return r
	}
	return nil
}

// endedTasks returns how many tasks have ended.
func (t *taskSet) endedTasks() uint32 { return t.ends[0] + t.ends[1] + t.ends[2] + t.ends[3] }

// mutJob returns a job for writing.
func (s *jobTable) mutJob(seq uint64) *job { return s.jobs.Mut(seq, s.epoch) }

// findJob returns the seq of a job, 0 if it is not in the state.
func (s *jobTable) findJob(id command.JobID) uint64 {
	if x := s.byName[id.Site]; x != nil {
		return x.nums[id.Num]
	}
	return 0
}
