package wire

import "time"

// TypeEvents is the content type of GET /v1/events: server-sent events.
const TypeEvents = "text/event-stream"

// Names of server-sent events that are not events of the federation.
const (
	EventHello = "hello" // the first of every stream; its data is a Hello
	EventReset = "reset" // events were missed; its data is a Reset
)

// Event is one event: what an entry of the log did, or what happened to a home
// job of the answering broker's site. Fields that a kind does not speak of are
// left out.
type Event struct {
	ID         string     `json:"id" example:"120.2" doc:"to go on after it; the same at every broker, but for home jobs"`
	Index      uint64     `json:"index" doc:"entry; of a home job the last one that told of something"`
	Kind       string     `json:"kind" example:"task.ended"`
	Time       *time.Time `json:"time" doc:"right to about a second"`
	LogMs      *int64     `json:"log_ms,omitempty" doc:"log time; home jobs have none"`
	Durability string     `json:"durability" enum:"federation,site" doc:"site: a home job, told by its own broker only"`

	Job     string  `json:"job,omitempty"`
	Owner   string  `json:"owner,omitempty"`
	User    string  `json:"user,omitempty" doc:"whose the job is; told by its owner's broker alone, to that user and the operator"`
	By      string  `json:"by,omitempty" doc:"who had the job cancelled: a user, or the operator; alike, as far as it is known"`
	Task    *uint32 `json:"task,omitempty"`
	Count   uint32  `json:"count,omitempty" doc:"tasks: of the job, or from task on, alike"`
	Attempt uint32  `json:"attempt,omitempty"`
	Token   uint64  `json:"token,omitempty"`
	Site    string  `json:"site,omitempty" doc:"executor, or the site that the event is about"`
	Machine string  `json:"machine,omitempty"`

	Outcome   string        `json:"outcome,omitempty" enum:"succeeded,failed,timed-out,cancelled,stopped,lost,declined,unstarted,suspected,orphaned,unopened,handed-back"`
	ExitCode  *int          `json:"exit_code,omitempty"`
	Signal    *int          `json:"signal,omitempty"`
	RunMs     int64         `json:"run_ms,omitempty" doc:"run that was charged to the ledger"`
	Delivered bool          `json:"delivered,omitempty" doc:"task.delivering has told the end of the attempt, and the same run_ms, which was charged then"`
	WaitMs    *int64        `json:"wait_ms,omitempty" doc:"from queued to started"`
	Usage     *AttemptUsage `json:"usage,omitempty" doc:"what the attempt has used, as its site measured it"`

	Resources *Resources `json:"resources,omitempty" doc:"of one task, or what a site exposes now"`
	Reason    string     `json:"reason,omitempty"`
}

// AttemptUsage is what an attempt has used. Memory and time that are left out are not known; bytes that are left out
// are none.
type AttemptUsage struct {
	PeakBytes int64  `json:"peak_memory_bytes,omitempty" doc:"greatest memory"`
	UserMs    int64  `json:"cpu_user_ms,omitempty" doc:"processor time in its own code"`
	SystemMs  int64  `json:"cpu_system_ms,omitempty" doc:"processor time in the kernel for it"`
	InBytes   int64  `json:"in_bytes,omitempty" doc:"of the files that it was given"`
	OutBytes  int64  `json:"out_bytes,omitempty" doc:"of the files that it has left"`
	Source    string `json:"measured_by" enum:"unknown,cgroup,rusage,container-engine,kubernetes" doc:"rusage: of processes that were waited for, of memory the largest one"`
}

// Hello begins a stream: who tells, and where it begins.
type Hello struct {
	Site  string `json:"site"`
	Index uint64 `json:"index" doc:"last entry applied"`
	From  string `json:"from" doc:"the stream holds what comes after this id"`
}

// Reset says that events between the last one and ID are not known here: read
// again what you keep, as it is at Index or later; the stream goes on after ID.
type Reset struct {
	ID     string `json:"id"`
	Index  uint64 `json:"index" doc:"last entry applied"`
	Reason string `json:"reason"`
}
