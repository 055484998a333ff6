package attempts

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Record is synced before the attempt is started anywhere: a record without a supervisor
// or a result is settled as lost, never started again.
type Record struct {
	ID      executor.ID        `json:"id"`
	Home    bool               `json:"home,omitempty"`
	Machine string             `json:"machine"`
	Need    executor.Resources `json:"need"`
	// Bounded: it ends by a bound that the federation knows, not by the lease.
	Bounded bool `json:"bounded,omitempty"`
	// AssignedMs is when this broker first saw the assignment, unix milliseconds.
	AssignedMs int64 `json:"assigned_ms"`
	// Staging: its files are being fetched, and nothing of it was started: a later life of the broker forgets it.
	Staging bool `json:"staging,omitempty"`
	// StagedMs is how long that took, 0 = it has not, or there was nothing to fetch.
	StagedMs int64 `json:"staged_ms,omitempty"`
	// Inputs are the blobs by which it has files; those that manifests name are not among them.
	Inputs  []InputBlob `json:"inputs,omitempty"`
	Index   uint32      `json:"index,omitempty"`    // of its task, by which it has one of each file; 0 without Inputs
	InBytes int64       `json:"in_bytes,omitempty"` // of all its files
	// Outputs are those that are collected at its end.
	Outputs executor.Outputs `json:"outputs,omitzero"`
}

// InputBlob is a blob that an attempt needs.
type InputBlob struct {
	files.Blob
	From jobspec.InputFrom `json:"from"`
}

// Attempt is one run of a task on one of this site's machines.
type Attempt struct {
	Record
	key     []byte // see recordKey
	Handler string
	Begun   int64 // CLOCK_BOOTTIME in this life of the broker, 0 = in an earlier one
	// Accepted: the handler has it, so that it can be told to stop.
	Accepted bool
	// Stopping: the handler was told to stop it. due: it is to be, with dueWhy,
	// once it has it.
	Stopping, due bool
	dueWhy        string
	// preparing: the shell prepares its start, and hears that it is to end.
	preparing bool
	// held is how it is to be started once it is Staged: all its files are here.
	held *turn.StartEffect
	// Invariant: while Staged, no handler has it, and Stop ends nothing: its caller does.
	Staged bool
	// Collecting: it has ended, and its outputs are being kept; then they are Output.
	Collecting bool
	Output     command.Output
	// waits: they wait for room at this site. yielded: what it took of its machine is free meanwhile. unwanted: its
	// task is to be stopped, with dueWhy.
	waits, yielded, unwanted bool
	// Fenced: the state no longer knows it, its end is of no interest.
	Fenced bool
	// Ended is its end once it is to be reported, else nil.
	Ended *executor.Result
	// waiters are closed once the handler has it, or never will.
	waiters []chan struct{}
}

// recordKey returns the key of its record in the journal.
func (a *Attempt) recordKey() []byte {
	if a.key == nil {
		a.key = []byte(a.ID.String())
	}
	return a.key
}

// releaseWaiters tells those who wait that no start is under way any more.
func (a *Attempt) releaseWaiters() {
	for _, w := range a.waiters {
		close(w)
	}
	a.waiters = nil
}

// HandsBack reports whether an attempt that its handler took, and that could not begin
// there, goes back to its queue like one that the handler refused.
func (a *Attempt) HandsBack() bool { return a.Home || !a.Fenced && !a.Stopping }

// IsOwnedBy reports whether the attempt's task is of a site's job.
func (a *Attempt) IsOwnedBy(site string) bool {
	job, err := command.ParseJobID(a.ID.Job)
	return err == nil && job.Site == site
}

// Outcome translates a handler's result. A stop that the state did not ask
// for (the broker went down together with its work) is a loss.
func Outcome(r executor.Result, asked bool) command.Outcome {
	switch r.Cause {
	case executor.Exited:
		if r.Succeeded() {
			return command.Succeeded
		}
		return command.Failed
	case executor.TimedOut:
		return command.TimedOut
	case executor.Stopped:
		if asked {
			return command.Stopped
		}
		return command.Lost
	case executor.Fenced, executor.Vanished:
		return command.Lost
	case executor.Declined:
		if asked {
			return command.Stopped
		}
		return command.Lost
	case executor.Orphaned:
		return command.Orphaned
	case executor.NoStart:
		return command.Failed
	}
	return command.Lost
}
