package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Errors of the broker's requests; api maps each to one HTTP status.
var (
	ErrNotFound    = errors.New("not found")                              // 404
	ErrBadCursor   = errors.New("cursor not valid")                       // 400
	ErrEnded       = errors.New("already ended")                          // 409
	ErrKeyReused   = errors.New("idempotency key reused for another job") // 422
	ErrUnfit       = errors.New("no present site could run it")           // 422, strict only
	ErrFull        = errors.New("queue full")                             // 429
	ErrKeysFull    = errors.New("too many idempotency keys held")         // 503
	ErrStorageFull = errors.New("storage full")                           // 503
	ErrNoQuorum    = errors.New("no quorum")                              // 503
	ErrStale       = errors.New("state too old")                          // 503
	ErrNotReady    = errors.New("broker not ready")                       // 503
	ErrLeaving     = errors.New("the site is leaving the federation")     // 409
	ErrStopping    = errors.New("broker stopping")                        // 503
	ErrUnreachable = errors.New("site unreachable")                       // 503
	ErrBadParams   = errors.New("invalid parameters")                     // 422
	ErrNothing     = errors.New("no task of it is like that")             // 409
	ErrNotOwner    = errors.New("it is not yours")                        // 403
	ErrScattered   = errors.New("too many gaps between its tasks")        // 409
)

// ErrOutputGone is ErrNotFound of an output that was where it was asked for: it is at
// no other site.
var ErrOutputGone = fmt.Errorf("%w", ErrNotFound) // 404

// Errors of an output that its site has.
var (
	ErrOutputDamaged    = errors.New("output damaged")            // 410
	ErrOutputUnreadable = errors.New("output not to be read now") // 503
)

// ElsewhereError says that another site's broker answers the question: api
// passes the request on to Peer.
type ElsewhereError struct {
	Site string
	Peer string // its peer address, host:port; "" when unknown
	Role string // "owner" or "executor"
}

// Error implements error.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("ask %s %s at %q", e.Role, e.Site, e.Peer)
}

// AnywhereError says that one of several other sites' brokers may have the
// answer: api asks them, each for what is Here.
type AnywhereError struct {
	// Query is what to ask them for. With Attempt 0 it is for the newest attempt that any
	// site has the output of, this one too: see broker.Broker.KeptOutputs.
	Query LogQuery
	What  string // is sought, for people
	Sites []ElsewhereError
	// Here is why this site cannot tell now whether it has it (ErrOutputUnreadable), the
	// answer if no other site has it; nil: it has it not.
	Here error
}

// Error implements error.
func (e *AnywhereError) Error() string {
	return fmt.Sprintf("ask %d sites for %s", len(e.Sites), e.What)
}

// Request is one job to accept.
type Request struct {
	Spec jobspec.Spec
	// User of this site who asks, "" for none. It stays at this site; Key is this user's own.
	User string
	// Key is the idempotency key, "" for none; Meaning is the spec's, compared when
	// the key is seen again.
	Key     string
	Meaning [32]byte
	// Line from 1, of a request with many jobs: the key is Key/Line; else 0.
	Line uint32
	// Lines are the jobs that the lines of the same request have become; nil: it is of one job. The core fills it.
	Lines *Lines
	// Operator: who asks may name any job of this site to wait for.
	Operator bool
	Strict   bool // refuse what no present site could run
	// Attached is what the owner's broker keeps of the job beside its spec; nil: nothing. It is durable with the job.
	Attached *Attached
	// Importing: Spec names no inputs yet. The job is held until they are here, or until it is known that they will not
	// be: see broker.Broker.Brought.
	Importing bool
	// Refused, if set, is why the job is not taken: its files are not here. What repeats an earlier request is answered
	// all the same.
	Refused error
}

// Durability of an acknowledged job.
const (
	DurableFederation = "federation" // committed by the quorum
	DurableSite       = "site"       // synced in this broker's journal only
)

// Retired is the state in an Answer that repeats one for a job which has ended
// and is no longer kept: how it ended is not known here any more.
const Retired = "retired"

// Answer is what became of one Request.
type Answer struct {
	ID         command.JobID
	State      string
	Reason     string
	Durability string
	Replayed   bool
	Err        error // the job was not accepted; wraps one of the errors above
}

// Job is a job as people see it, run at home or by the federation.
type Job struct {
	ID          command.JobID
	Spec        jobspec.Spec
	State       string
	Reason      string
	Durability  string
	Counts      map[string]uint32 // every task state, zero ones too
	SubmittedAt time.Time
	StartedAt   time.Time // zero = not yet
	EndedAt     time.Time
	// Outline: of the spec there are the count and the needs of a task only; the job is not the asker's.
	Outline bool
	// Sealed: this broker cannot read the name, the command and the environment.
	Sealed bool
	// User of this site whose the job is; "" = it is the site's own, or not this broker's to tell.
	User string
	// CancelledBy says who had it cancelled; "" = nobody, or it is not known, or not this broker's to tell.
	CancelledBy string
	// Notices of its end that are, or were, to be sent: of one job that is this broker's own, and never of an Outline.
	Notices []Notice
	// Unbrought: it was cancelled before it began, since its inputs did not come (Request.Importing); Reason says why.
	Unbrought bool
}

// Task is one task as people see it.
type Task struct {
	Index     uint32 // as its program sees it
	State     string
	Reason    string
	Site      string // executor, "" = none yet
	Machine   string
	Attempt   uint32
	Token     uint64
	StartedAt time.Time
	EndedAt   time.Time
	// Run is how long it ran: by the log's clock, as the ledger charges it; of a
	// home task as its broker saw it. Negative before its end.
	Run      time.Duration
	ExitCode *int
	Signal   *int
	// Measured is what the attempt has used, once it has ended: as its site says, and of a large job's not kept.
	Measured command.Measured
	// Unrecorded: it has ended, and the state does not keep which attempts it has had.
	// Attempt is 0 then.
	Unrecorded bool
	// Position is the task's number in the state and at the handlers.
	Position uint32
	// FilesAway is about what it left at another site, having ended without success, if that is not here. Reason says
	// it, too.
	FilesAway FilesAway
}

// FilesAway says of files that are not at their owner why they are not; the zero value is that they are, or that there
// are none.
type FilesAway struct {
	Why    string
	Coming bool // they are on their way
}

// JobQuery selects and pages jobs, newest first.
type JobQuery struct {
	State, Site string
	Labels      map[string]string
	Name        string // a part of the name, in lower case; "" = any
	User        string // of this site, "" = any: for package api, which knows who asks; a broker passes it over
	Limit       int    // 1 … 1000
	Cursor      string // "" = from the newest
}

// JobPage is one page; Next is "" on the last.
type JobPage struct {
	Items []Job
	Next  string
}

// KeptOutput is what one site knows of a task's output.
type KeptOutput struct {
	Position uint32
	Attempt  uint32 // the newest of which it has the output; 0 = of none
	// Err says why there is none: ErrOutputGone, ErrOutputUnreadable, ErrOutputDamaged;
	// nil = it knows of none.
	Err error
}

// LogQuery names one stream of one attempt.
type LogQuery struct {
	Job     command.JobID
	Task    uint32 // index
	Attempt uint32 // 0 = the latest
	Stream  string // stdout | stderr
	Follow  bool
	Here    bool // only of what ran at the asked site; needs Attempt, and Task is a position
}

// Status is what a broker knows of itself and the federation.
type Status struct {
	Site        string
	Lead        string
	Term        uint64
	Index       uint64
	HashIndex   uint64 // the state's hash was taken at this entry
	Hash        string
	Version     string
	Federation  string // uuid
	Voters      []string
	Members     []string
	Handlers    []HandlerStatus
	Incarnation uint64
	Estimates   Calibration // of starts, this broker's own
	Compared    Comparison
	// ShutOut is why the federation takes nothing that this broker says, "" = it does.
	ShutOut string
	// LogTimeAhead is how far the log's time, which leaders stamp, has run ahead of this machine's clock.
	LogTimeAhead time.Duration
	Outputs      executor.OutputStats // of ended attempts, that this site keeps
	Placement    Placement            // how far the voters are from each other
}

// HandlerStatus is one handler's line for people. Trouble says which of its machines
// could not start tasks, and when they try again; "" = none.
type HandlerStatus struct{ Name, Status, Trouble string }

// Site is one site as people see it.
type Site struct {
	fsm.SiteView
	Voter bool
}

// AttemptName is for people.
func (q LogQuery) AttemptName() string {
	return fmt.Sprintf("attempt %d of task %s/%d", q.Attempt, q.Job, q.Task)
}

// MatchesPublic reports whether a job's payload has what is asked for of what everybody may read: all but the name.
func (q *JobQuery) MatchesPublic(payload []byte) bool { return jobspec.MatchLabels(payload, q.Labels) }

// Matches reports whether a job's payload has what is asked for. Of a payload that by cannot read no name matches.
func (q *JobQuery) Matches(payload []byte, by jobspec.Opener) bool {
	if !q.MatchesPublic(payload) {
		return false
	}
	if q.Name == "" {
		return true
	}
	_, text, err := by.Open(payload)
	return err == nil && jobspec.MatchName(text, q.Name)
}
