package node

import (
	"sort"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Held is the name of the state of tasks that are held; see [fsm.Held]. Tasks of a job that its owner's broker holds,
// because it waits for other jobs, are so, too: the replicated state has no such tasks.
const Held = "held"

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
	// Followed are the first jobs that have waited for it and do no more, of FollowedAll: of those that its broker
	// remembers since its start.
	Followed    []command.JobID
	FollowedAll int
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
