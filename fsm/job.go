package fsm

import (
	"slices"
	"sort"
)

// job is a submitted job. A job of a million tasks is this record and a few
// runs: tasks that were never assigned are the range [next, count).
type job struct {
	num         uint64
	entry       uint64 // that published it
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
	priority    int32
	count       uint32
	next        uint32 // Invariant: only grows; tasks ≥ next wait, but for tasks.ahead of them
	maxAttempts uint32
	onLoss      OnLoss
}

// taskSet holds what the range cannot: every task < next is live (in
// State.live), or in back, or in runs; runs may hold tasks ≥ next.
type taskSet struct {
	epoch   uint64
	back    backList  // waiting again
	runs    []run     // ended, by from
	records []record  // of ended tasks, by task; small jobs only
	ends    [4]uint32 // ended tasks by state − TaskSucceeded
	live    [5]uint32 // live attempts by way
	ahead   uint32    // ended tasks ≥ job.next; they are in runs
	bars    []bar     // by site; never changed in place; some may be void
	why     string    // of the first bad end
	cancel  uint32    // where the job's cancel was asked first: the site's id + 1; 0 = nowhere, or not told
}

// backTask is a task that returned to the queue.
type backTask struct {
	task             uint32
	attempt          uint32 // the last one
	failures, losses uint32
	doubts           uint32 // see attempt
	queuedMs         int64
}

// run is a range of tasks that ended alike.
type run struct {
	from, to uint32 // [from, to)
	state    TaskState
	exit     int32
	endedMs  int64 // for ends without an attempt; −1 = see the record
}

// record is what GET tasks shows of an ended task.
type record struct {
	task, attempt, failures, losses uint32
	exit, signal                    int32
	site                            int32
	token                           uint64
	queuedMs, assignedMs, startedMs int64
	endedMs                         int64
	machine, detail                 string
}

// way is how far a live attempt is.
type way uint8

const (
	wayAssigned way = iota
	wayRunning
	wayStopping
	wayAway  // owner and executor are the same lost site
	wayDying // lost, but not certainly dead before its bound
	wayLeft  // its task is settled: see leftover
)

// waiting is the number of queued tasks.
func (j *job) waiting() uint32 {
	n := j.count - j.next
	if j.tasks != nil {
		n += uint32(j.tasks.back.n) - j.tasks.ahead
	}
	return n
}

// skip moves next over ended tasks.
func (j *job) skip() {
	t := j.tasks
	for t.ahead > 0 {
		i, ok := t.findRun(j.next)
		if !ok {
			return
		}
		t.ahead -= t.runs[i].to - j.next
		j.next = t.runs[i].to
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
	case j.tasks.epoch != epoch:
		dup := *j.tasks
		dup.epoch = epoch
		dup.back, dup.runs, dup.records = dup.back.clone(), slices.Clone(dup.runs), slices.Clone(dup.records)
		j.tasks = &dup
	}
	return j.tasks
}

// findRun returns the run that holds task, or the position it would have.
func (t *taskSet) findRun(task uint32) (int, bool) {
	i := sort.Search(len(t.runs), func(i int) bool { return t.runs[i].to > task })
	return i, i < len(t.runs) && t.runs[i].from <= task
}

func (r run) like(o run) bool {
	return r.state == o.state && r.exit == o.exit && r.endedMs == o.endedMs
}

// addRun enters a run of tasks that just ended, joined with equal neighbours.
func (t *taskSet) addRun(r run) {
	t.ends[r.state-TaskSucceeded] += r.to - r.from
	i, _ := t.findRun(r.from)
	left := i > 0 && t.runs[i-1].to == r.from && t.runs[i-1].like(r)
	right := i < len(t.runs) && t.runs[i].from == r.to && t.runs[i].like(r)
	switch {
	case left && right:
		t.runs[i-1].to = t.runs[i].to
		t.runs = slices.Delete(t.runs, i, i+1)
	case left:
		t.runs[i-1].to = r.to
	case right:
		t.runs[i].from = r.from
	default:
		t.runs = slices.Insert(t.runs, i, r)
	}
}

// addRecord keeps an ended task's details.
func (t *taskSet) addRecord(r record) {
	i := len(t.records)
	if i > 0 && t.records[i-1].task > r.task {
		i = sort.Search(i, func(i int) bool { return t.records[i].task > r.task })
	}
	t.records = slices.Insert(t.records, i, r)
}

// findRecord returns an ended task's details, or nil.
func (t *taskSet) findRecord(task uint32) *record {
	i := sort.Search(len(t.records), func(i int) bool { return t.records[i].task >= task })
	if i < len(t.records) && t.records[i].task == task {
		return &t.records[i]
	}
	return nil
}

// endedTasks is how many tasks have ended.
func (t *taskSet) endedTasks() uint32 { return t.ends[0] + t.ends[1] + t.ends[2] + t.ends[3] }

// mutJob returns a job for writing.
func (s *State) mutJob(seq uint64) *job { return s.jobs.mut(seq, s.epoch) }

// findJob returns the seq of a job, 0 if it is not here.
func (s *State) findJob(id JobID) uint64 {
	if x := s.byName[id.Site]; x != nil {
		return x.nums[id.Num]
	}
	return 0
}
