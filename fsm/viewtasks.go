package fsm

import (
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TaskStates is a set of task states; the zero value holds all of them.
type TaskStates uint16

// With returns the set with one more state.
func (t TaskStates) With(state TaskState) TaskStates { return t | 1<<state }

// Has reports whether tasks in a state are selected.
func (t TaskStates) Has(state TaskState) bool { return t == 0 || t&(1<<state) != 0 }

// ParseTaskState reads a state's name in the API.
func ParseTaskState(name string) (TaskState, bool) {
	for i, known := range stateNames {
		if name == known {
			return TaskState(i), true
		}
	}
	return 0, false
}

// TaskStateNames returns the names that ParseTaskState reads, for people to read.
func TaskStateNames() string { return strings.Join(stateNames[:], ", ") }

// maxTaskLooks bounds the tasks and runs of tasks that one TaskScan examines, so that a search in a job of a
// million tasks does not delay an entry.
const maxTaskLooks = 20_000

// TaskScan searches the tasks of one job in a bounded number of steps.
type TaskScan struct {
	States TaskStates
	Limit  int
	Found  []TaskView
	looks  int
}

// done reports whether the scan must not examine more.
func (t *TaskScan) done() bool { return len(t.Found) >= t.Limit || t.looks >= maxTaskLooks }

// ScanTasks adds to scan.Found those of a job's tasks [from, to) whose states it selects. It returns the task
// to continue with; to or more when none is left.
func (s *views) ScanTasks(id command.JobID, scan *TaskScan, from, to uint32) uint32 {
	seq := s.findJob(id)
	if seq == 0 {
		return to
	}
	j := s.jobs.Get(seq)
	to = min(to, j.count)
	for from < to {
		if scan.done() {
			return from
		}
		scan.looks++
		if next := s.passOver(j, scan.States, from); next > from {
			from = next
			continue
		}
		if v := s.viewTask(seq, j, from); scan.States.Has(v.State) {
			scan.Found = append(scan.Found, v)
		}
		from++
	}
	return from
}

// passOver returns the first task from i on that may be in one of the states. It skips tasks that ended alike
// or never left the range, all at once.
func (s *views) passOver(j *job, states TaskStates, i uint32) uint32 {
	waits := Queued
	if j.tasks == nil && j.gated {
		waits = Held
	}
	if !s.sites[j.owner].present() {
		waits = Withdrawn
	}
	if j.gated && j.tasks != nil {
		return s.passOverGated(j, states, i)
	}
	if j.tasks == nil {
		if states.Has(waits) {
			return i
		}
		return j.count
	}
	at, ended := j.tasks.findRun(i)
	switch {
	case ended && !states.Has(at.state):
		return at.to
	case ended || i < j.next || states.Has(waits):
		return i
	case at != nil:
		return at.from
	}
	return j.count
}

// PayloadBegins reports whether a job's payload begins with a text.
func (s *views) PayloadBegins(id command.JobID, text string) bool {
	seq := s.findJob(id)
	if seq == 0 {
		return false
	}
	return strings.HasPrefix(s.jobs.Get(seq).payload.data, text)
}
