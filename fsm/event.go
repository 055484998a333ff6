package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// Event is one thing that an entry did, in the terms of the state. Equal states that apply equal entries
// emit equal events in equal order, so (Index, position in the entry) identifies an event at every
// replica. Events are not part of the state: they are in no hash and no snapshot, and cost nothing while
// nobody observes.
//
// Fields that a kind does not use are zero. Strings are never changed, so an event may be kept and
// shared.
type Event struct {
	Index uint64 // entry
	Time  int64  // log time, ms
	Kind  EventKind
	End   Ending        // of EventTaskEnded, EventTaskRequeued, EventTaskHeld, EventTaskDelivering, EventJobEnded
	Job   command.JobID // Job.Site is the owner
	// Task is the first of Count tasks to which the same happened; Count ≥ 1 where a task is meant.
	Task, Count uint32
	Attempt     uint32 // 0 = it was never assigned
	Token       uint64
	Site        string // executor, or the site that the event is about
	Machine     string
	ExitCode    int32
	Signal      int32
	Need        command.Resources // of one task; what a site exposes in EventSiteOffered
	// QueuedMs, AssignedMs and StartedMs are log time, −1 = not yet, or never; RunMs is the run that
	// was charged to the ledger, 0 = none.
	QueuedMs, AssignedMs, StartedMs, RunMs int64
	// BeyondMs is by how much the run that its site reported goes beyond the log time since the assignment: what was
	// not charged of it for that reason. 0 = it fits, as with every honest site but for delays.
	BeyondMs int64
	// Delivered: EventTaskDelivering has told the end of the attempt, with the same RunMs, which was charged then. Now
	// the task leaves that place.
	Delivered bool
	// Output and Measured are what the attempt's site told of it when it ended.
	Output   command.Output
	Measured command.Measured
	Reason   string
}

// EventKind says what happened.
type EventKind uint8

// The kinds. Their numbers are not on any wire; their names are (see String).
const (
	EventFounded        EventKind = iota // the federation began
	EventParamsChanged                   // policy or limits
	EventJobSubmitted                    // Count tasks wait
	EventJobCancelling                   // its owner asked to end it, or one of its tasks (Count = 1)
	EventJobEnded                        // every task has ended
	EventTaskAssigned                    // a machine was reserved for it
	EventTaskStarted                     // its process runs
	EventTaskStopping                    // its site is to end it
	EventTaskRequeued                    // its attempt is gone; it waits again
	EventTaskHeld                        // it waits for its owner; with an End its attempt is gone, too
	EventTaskReleased                    // its owner lets it wait
	EventTaskDelivering                  // its attempt has succeeded and ended; its outputs are on their way
	EventTaskEnded                       // finally
	EventTaskAdopted                     // its site has registered again and answers for it
	EventTaskWithdrawn                   // owner and executor are the same lost site
	EventTaskDying                       // lost, but not certainly dead before its bound
	EventTaskResumed                     // after a suspicion: its site is heard again, and it has its attempt back
	EventHomeRan                         // a site reported a run outside the log
	EventSiteRegistered                  // a broker introduced itself (for the first time, or restarted)
	EventSiteReturned                    // the same, for a site that was lost or had left
	EventSiteOffered                     // what it exposes changed
	EventSiteSuspected                   // its offers are suspended
	EventSiteTrusted                     // and count again
	EventSiteLost                        // its lease ran out
	EventSiteLeft                        // on its own
	EventSiteForgotten                   // its departure is over
	EventJobHeld                         // it waits for other jobs. Only its owner's broker tells this and the next one
	EventJobReleased                     // it waits for none any more, and goes where other jobs go
	EventJobPrioritized                  // its owner has given it another priority
	eventKinds
)

var eventNames = [eventKinds]string{
	EventFounded: "federation.founded", EventParamsChanged: "policy.changed",
	EventJobSubmitted: "job.submitted", EventJobCancelling: "job.cancelling", EventJobEnded: "job.ended",
	EventTaskAssigned: "task.assigned", EventTaskStarted: "task.started", EventTaskStopping: "task.stopping",
	EventTaskRequeued: "task.requeued", EventTaskHeld: "task.held", EventTaskReleased: "task.released",
	EventTaskDelivering: "task.delivering", EventTaskEnded: "task.ended",
	EventTaskAdopted: "task.adopted", EventTaskWithdrawn: "task.withdrawn",
	EventTaskDying: "task.dying", EventTaskResumed: "task.resumed", EventHomeRan: "home.ran",
	EventSiteRegistered: "site.registered", EventSiteReturned: "site.returned", EventSiteOffered: "site.offered", EventSiteSuspected: "site.suspected",
	EventSiteTrusted: "site.trusted", EventSiteLost: "site.lost", EventSiteLeft: "site.left", EventSiteForgotten: "site.forgotten",
	EventJobHeld: "job.held", EventJobReleased: "job.released",
	EventJobPrioritized: "job.prioritized",
}

// String returns the kind's name in the API.
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return "unknown"
}

// EventKinds returns all kinds, in order.
func EventKinds() []EventKind {
	out := make([]EventKind, eventKinds)
	for i := range out {
		out[i] = EventKind(i)
	}
	return out
}

// Ending says how an attempt, a task or a job ended.
type Ending uint8

// The endings; NoEnding is for an event that has none.
const (
	NoEnding      Ending = iota
	EndSucceeded         // exit code 0
	EndFailed            // a task: finally; requeued: it has attempts left
	EndTimedOut          // requeued only; the final ending is EndFailed
	EndCancelled         // its owner asked
	EndStopped           // requeued only: stopped though nobody asked
	EndLost              // requeued: its site lost it
	EndDeclined          // requeued only: its site returned it
	EndUnstarted         // requeued only: its site never began it
	EndSuspected         // requeued only: its site is suspected and may still run it
	EndOrphaned          // requeued only: it lost what watched it while its site stood, and was charged
	EndUnopened          // requeued only: its site returned it, for want of a key to what it runs, or of its files
	EndHandedBack        // requeued only: it was assigned ahead, and its site returned it to be begun elsewhere sooner
)

var endingNames = [...]string{
	"", "succeeded", "failed", "timed-out", "cancelled", "stopped", "lost", "declined", "unstarted", "suspected",
	"orphaned", "unopened", "handed-back",
}

// String returns the ending's name in the API.
func (e Ending) String() string {
	if int(e) < len(endingNames) {
		return endingNames[e]
	}
	return "unknown"
}

// EndingOf returns the ending that a final state means.
func EndingOf(t TaskState) Ending {
	switch t {
	case TaskSucceeded:
		return EndSucceeded
	case TaskFailed:
		return EndFailed
	case TaskCancelled:
		return EndCancelled
	case TaskLost:
		return EndLost
	case Queued, Assigned, Running, Stopping, Withdrawn, Held:
	}
	return NoEnding
}

// endingOf returns the ending that an attempt's outcome means for a task that waits again.
func endingOf(o command.Outcome) Ending {
	switch o {
	case command.Succeeded:
		return EndSucceeded
	case command.Failed:
		return EndFailed
	case command.TimedOut:
		return EndTimedOut
	case command.Stopped:
		return EndStopped
	case command.Lost:
		return EndLost
	case command.Orphaned:
		return EndOrphaned
	case neverRan:
		return EndUnstarted
	case declined:
		return EndDeclined
	case doubted:
		return EndSuspected
	case unopened:
		return EndUnopened
	case returned:
		return EndHandedBack
	}
	return NoEnding
}
