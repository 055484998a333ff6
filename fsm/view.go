package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// Views are copies: nothing in them points into the state.

// TaskState is how far a task has come.
type TaskState uint8

// The task states; those from TaskSucceeded to TaskLost are final.
const (
	Queued TaskState = iota
	Assigned
	Running
	Stopping
	TaskSucceeded
	TaskFailed
	TaskCancelled
	TaskLost
	Withdrawn
	Held // its owner has not released it
)

// Counts is the number of a job's tasks in each state, indexed by TaskState.
type Counts [Held + 1]uint32

// JobView is one job.
type JobView struct {
	ID                           command.JobID
	Spec                         command.JobSpec
	State                        TaskState // of the job as a whole, see Counts.JobState
	Counts                       Counts
	Seq                          uint64 // order of arrival in the state; the list's cursor
	Entry                        uint64 // entry that published it
	QueuedMs, StartedMs, EndedMs int64  // log time; −1 = not yet
	Reason                       string // why it waits or how it ended, one line
	Delivering                   uint32 // of the running tasks: they have run, and their outputs are on their way
}

// TaskView is one task.
type TaskView struct {
	Index                                    uint32
	State                                    TaskState
	Reason                                   string
	Site                                     string // executor of the current or last attempt
	Machine                                  string
	Attempt                                  uint32 // 0 before the first assignment
	Token                                    uint64
	QueuedMs, AssignedMs, StartedMs, EndedMs int64 // log time; −1 = not yet
	ExitCode                                 int32
	Signal                                   int32
	Failures, Losses                         uint32
	Orphans                                  uint32 // of attempts that lost what watched them, or their network
	// Delivering: State is Running, its attempt has ended, and its outputs are on their way to its owner.
	Delivering bool
	// Output and Measured are what its site told of the attempt when it ended; of a large job only while it delivers.
	Output   command.Output
	Measured command.Measured
}

// Assignment is a live attempt at a site, which its broker must be running (Stop false) or ending (Stop
// true). While the site is lost it is what a registration may still answer for.
type Assignment struct {
	command.AttemptRef
	Machine   string
	Need      command.Resources
	TimeoutMs int64
	OnLoss    command.OnLoss
	Delivers  bool // its owner wants its outputs: they are to be collected, unless the site is the owner's own
	Started   bool
	Stop      bool
	StopWhy   string
	BoundMs   int64 // log time by which it is certainly dead, 0 = none was declared
	Payload   []byte
}

// SiteState is the state of a registered site.
type SiteState uint8

// The site states.
const (
	Alive SiteState = iota
	Suspected
	SiteGone // lost: its lease ran out
	Left
)

// SiteView is one site.
type SiteView struct {
	ID                                string
	Node                              [16]byte
	State                             SiteState
	Incarnation                       uint64
	HTTP, Peer, Gossip                string
	MaxVersion                        uint32
	Capacity, Exposed, Assigned, Home command.Resources
	Machines                          []MachineView
	OfferVersion                      uint64
	Closed                            command.Closure // why it lends nothing, as its broker says, while it is present
}

// MachineView is one exposed machine.
type MachineView struct {
	Name          string
	Exposed, Free command.Resources
	Runs          command.Runs
	Slots         int64 // tasks at once, 0 = as many as fit
	Labels        command.Labels
	Reserved      string // the job that the machine is reserved for, or ""
}

// QueueView is what one site has waiting.
type QueueView struct {
	Site     string
	Waiting  uint64 // tasks
	MilliCPU int64
	OldestMs int64  // log time the oldest was queued
	Priority string // decimal, in the policy's unit
}

// AccountView is one site's account in decimal strings, in LedgerView.Unit.
type AccountView struct {
	Site, Contribution, Utility, Priority string
}

// CellView is what Owner's tasks used of Executor's machines, ended tasks only. A = Σw, B = Σw(s+e−1), R =
// Σw·r, decimal.
type CellView struct {
	Owner, Executor string
	Tasks           uint64
	A, B, R         string
}

// LedgerView is the whole ledger.
type LedgerView struct {
	Index  uint64
	TimeMs int64
	Unit   string
	Sites  []AccountView
	Matrix []CellView
}

// JobFilter selects jobs in a list; zero fields select all.
type JobFilter struct {
	Owner string
	State string                    // a job state's name
	Match func(payload []byte) bool // nil: all; it must not keep the payload
}
