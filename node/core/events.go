package core

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Event is something that happened to this broker.
type Event interface{ isEvent() }

// SubmitEvent says that users of this site submit jobs (the paper's event 1). Reply is
// called once per request, from the shell, after what it acknowledges is durable.
type SubmitEvent struct {
	Reqs []node.Request
	// Full, if set, is why no new job is taken; repeats are answered.
	Full  error
	Reply func(i int, a node.Answer)
}

// StateEvent says that the replicated state changed (event 2, and 5).
type StateEvent struct{}

// CapacityEvent says that a handler's machines changed (event 3).
type CapacityEvent struct {
	Handler  string
	Machines []executor.Machine
}

// AcceptedEvent says that a handler took an attempt.
type AcceptedEvent struct{ ID executor.ID }

// UnstoppedEvent says that a handler could not stop an attempt.
type UnstoppedEvent struct{ ID executor.ID }

// StartedEvent says that an attempt's process runs.
type StartedEvent struct{ ID executor.ID }

// PreparingEvent says that the start of an attempt with files is being prepared, and what its files have, 0 = that is
// not known yet.
type PreparingEvent struct {
	ID      executor.ID
	InBytes int64
}

// StagedEvent says that all files of an attempt are here, and how much that is.
type StagedEvent struct {
	ID      executor.ID
	InBytes int64
}

// UnstagedEvent says why an attempt's files are not, or will not be, here.
type UnstagedEvent struct {
	ID    executor.ID
	Fault inputs.Fault
	Why   string
}

// RoomEvent says that room for files here has changed. It is sent now and then, not for each change.
type RoomEvent struct {
	// Room is how many bytes files and outputs of another site's task may take that comes now.
	Room int64
	// Fit are the jobs that were declined with inputs.Full and would have room now.
	Fit []command.JobID
}

// CollectedEvent answers a CollectEffect.
type CollectedEvent struct {
	ID     executor.ID
	Result executor.Result // the effect's
	Output command.Output  // what is kept
	// Failed says what the task has not left as it had to, Lost why this site could not keep what it left.
	Failed, Lost string
	// Note says which files could not travel, for people; "" = all could.
	Note string
	// Ended: there was no room, and the waiting for it was ended.
	Ended bool
}

// CollectWaitsEvent says that what an attempt has left waits for room.
type CollectWaitsEvent struct{ ID executor.ID }

// RecordEvent has records of the shell's synced with those of the turn.
type RecordEvent struct {
	Writes []record.Write
	Done   func()
}

func (PreparingEvent) isEvent()    {}
func (StagedEvent) isEvent()       {}
func (UnstagedEvent) isEvent()     {}
func (CollectedEvent) isEvent()    {}
func (CollectWaitsEvent) isEvent() {}
func (RoomEvent) isEvent()         {}
func (RecordEvent) isEvent()       {}

// EndedEvent says that an attempt ended (event 4).
type EndedEvent struct {
	ID     executor.ID
	Result executor.Result
}

// RefusedEvent says that a handler did not take an attempt.
type RefusedEvent struct {
	ID  executor.ID
	Err error
}

// KeysEvent says what an owner answered to a KeyAsk, or why it could not be asked.
type KeysEvent struct {
	Owner   string
	Answers []seal.Answer // one for each attempt of the question, in its order
	Failed  string        // "" = it has answered
}

// ResultEvent says that commands were executed, or never will be (Err).
type ResultEvent struct {
	Cmds    []command.Command
	Results []command.Result
	Err     error
}

// CancelEvent says that the owner cancels one of its jobs, or tasks of it.
type CancelEvent struct {
	Num uint64
	// Tasks are the only ones to end, if there are some.
	Tasks jobspec.Indices
	// At is the site whose broker was asked; empty: this one's.
	At    string
	Reply func(error)
}

// RegisteredEvent says that the federation knows this start of the broker.
type RegisteredEvent struct {
	Result command.Result
	Boot   [16]byte
}

// TickEvent says that some time passed.
type TickEvent struct{}

// DeliverEvent says what became of outputs of this site's tasks, at most command.MaxReports of them. Done is called
// with what the federation answers, on the core's goroutine: it must not wait.
type DeliverEvent struct {
	Attempts []command.Delivered
	Done     func(command.Code)
}

// AskEvent reads or changes the core on its own goroutine.
type AskEvent func(*Core)

func (SubmitEvent) isEvent()     {}
func (StateEvent) isEvent()      {}
func (CapacityEvent) isEvent()   {}
func (AcceptedEvent) isEvent()   {}
func (UnstoppedEvent) isEvent()  {}
func (StartedEvent) isEvent()    {}
func (EndedEvent) isEvent()      {}
func (RefusedEvent) isEvent()    {}
func (KeysEvent) isEvent()       {}
func (ResultEvent) isEvent()     {}
func (CancelEvent) isEvent()     {}
func (RegisteredEvent) isEvent() {}
func (TickEvent) isEvent()       {}
func (DeliverEvent) isEvent()    {}
func (AskEvent) isEvent()        {}

// DiskEvent says that the disk has become full, or has room again (nil).
type DiskEvent struct{ Full error }

func (DiskEvent) isEvent() {}

// UnsureEvent says why this site must begin nothing for others: its state may be wrong. "": it may again.
type UnsureEvent struct{ Why string }

func (UnsureEvent) isEvent() {}
