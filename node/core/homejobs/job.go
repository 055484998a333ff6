package homejobs

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Task is one task of a home job; it is also its journal record.
type Task struct {
	State    fsm.TaskState `json:"state"`
	Reason   string        `json:"reason,omitempty"`
	Machine  string        `json:"machine,omitempty"`
	Attempt  uint32        `json:"attempt"`
	Token    uint64        `json:"token"`
	ExitCode int           `json:"exit_code"`
	Signal   int           `json:"signal"`
	Failures uint32        `json:"failures,omitempty"`
	Losses   uint32        `json:"losses,omitempty"`
	Orphans  uint32        `json:"orphans,omitempty"`
	// Moments in unix milliseconds, 0 = not yet.
	StartedMs int64 `json:"started_ms,omitempty"`
	EndedMs   int64 `json:"ended_ms,omitempty"`
	// Measured is what its latest attempt has used, nil = it has not ended, or nobody knows.
	Measured *command.Measured `json:"measured,omitempty"`
	// runMs is the run of the attempt that has just ended, until it is told.
	runMs int64
	// measures: Measured is of that attempt, and is told with its run.
	measures bool
	// counted is the state that the job's counts have.
	counted fsm.TaskState
	// orphaned: its last attempt was.
	orphaned bool
	// back: its handler did not take the last attempt, which never ran.
	back bool
}

// Job is a job that runs at home.
type Job struct {
	Spec  command.JobSpec // changes in its priority alone
	Tasks []Task
	// queuedMs is since when it may run, in unix milliseconds: a job that waited for others was submitted before.
	queuedMs int64
	// counts of Tasks by state. Invariant: right after changed.
	counts fsm.Counts
	// summary of Tasks, if summed.
	summary Summary
	summed  bool
	// refusals of handlers that will never run its tasks; asked again by a restart.
	refusals []refusal
	// taken: a handler has taken an attempt of it, and has not handed back all of them.
	taken bool
	// numbers are the tasks' indices, nil until they are asked for.
	numbers *jobspec.Numbering
}

// index returns the index of the task at a position.
func (j *Job) index(position uint32) uint32 {
	if j.numbers == nil {
		n := jobspec.NumberingOf(j.Spec.Payload, j.Spec.Count)
		j.numbers = &n
	}
	return j.numbers.Index(position)
}
