package node

import (
	"sort"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Held is the state of tasks whose job waits for other jobs; the job counts as queued. Only the owner's broker knows
// it: the replicated state has no such tasks.
const Held = "held"

// HeldState is Held as a member of [fsm.TaskStates]. It is of no task in the state, and has no name there.
const HeldState fsm.TaskState = 15

// ParseTaskState reads a task state's name in the API.
func ParseTaskState(name string) (fsm.TaskState, bool) {
	if name == Held {
		return HeldState, true
	}
	return fsm.ParseTaskState(name)
}

// TaskStateNames returns the names that ParseTaskState reads, for people to read.
func TaskStateNames() string { return fsm.TaskStateNames() + ", " + Held }

// Events of jobs that wait for others. The state has no such event: only the owner's broker tells them.
const (
	EventJobHeld     fsm.EventKind = 240 + iota // it waits for other jobs
	EventJobReleased                            // it waits for none any more, and goes where other jobs go
)

// EventName returns the name of a kind of event in the API.
func EventName(k fsm.EventKind) string {
	switch k {
	case EventJobHeld:
		return "job.held"
	case EventJobReleased:
		return "job.released"
	default:
		return k.String()
	}
}

// EventKinds returns all kinds of events, in order.
func EventKinds() []fsm.EventKind { return append(fsm.EventKinds(), EventJobHeld, EventJobReleased) }

// Dependency is a job that another one waits for, and how it has ended.
type Dependency struct {
	Job  command.JobID
	When jobspec.When
	// State in which it has ended, "" = it has not, or nobody has seen it. OutcomeUnknown: nobody knows any more.
	State string
}

// OutcomeUnknown says of a job that it is no longer kept, and that its end was not seen.
const OutcomeUnknown = "unknown"

// Dependencies are what a job waits for, and what waits for it, as far as its owner's broker knows it.
type Dependencies struct {
	// On are the jobs that it waits for; empty: it waits for none any more, and its spec says what it named.
	On []Dependency
	// Waiting are the first jobs that wait for it, of All.
	Waiting []command.JobID
	All     int
}

// Lines are the jobs that the lines of one request have become. Only the broker's core reads and changes them.
type Lines struct{ runs []lineRun }

// lineRun is consecutive lines that have become consecutive jobs.
type lineRun struct {
	line, n uint32
	num     uint64
}

// Set notes which job a line has become. Lines come in order.
func (l *Lines) Set(line uint32, num uint64) {
	if last := len(l.runs) - 1; last >= 0 {
		r := &l.runs[last]
		if line-r.line == r.n && num-r.num == uint64(r.n) {
			r.n++
			return
		}
	}
	l.runs = append(l.runs, lineRun{line, 1, num})
}

// Job returns the job that a line has become; false: none, or not yet.
func (l *Lines) Job(line uint32) (num uint64, ok bool) {
	i := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].line > line }) - 1
	if i < 0 || line-l.runs[i].line >= l.runs[i].n {
		return 0, false
	}
	return l.runs[i].num + uint64(line-l.runs[i].line), true
}
