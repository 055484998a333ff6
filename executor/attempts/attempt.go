package attempts

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Attempt is what every handler knows of an attempt, whatever runs it; a handler
// embeds it in a record of its own.
type Attempt struct {
	Task executor.Task
	Name string // of Task.ID
	Hold Hold
	// Began is when an adopted one was seen to run in an earlier life, zero = it was
	// not. Set before [Set.Adopted].
	Began time.Time
	// Done is closed when Ended is set.
	Done chan struct{}
	// Ended is nil while it runs. Guarded by the handler's lock. Invariant: set
	// once, before Done is closed; what it points to never changes.
	Ended *End
	// Forgotten: the broker has its end, and only its logs are kept. Guarded by the
	// handler's lock.
	Forgotten bool

	// NoOutput is why its output is not there, "" = it is. Guarded by the handler's lock.
	NoOutput string

	accepted chan struct{} // closed when Start is decided
	startErr error         // why Start failed; set before accepted is closed
}

// End is how an attempt ended.
type End struct {
	Result executor.Result `json:"result"`
	At     time.Time       `json:"at"`
	Out    [2]int64        `json:"out"` // bytes of stdout and of stderr
}

// NewAttempt returns one whose start is not decided yet: see [Set.Start].
func NewAttempt(t executor.Task) Attempt {
	return Attempt{Task: t, Name: t.ID.String(), accepted: make(chan struct{}), Done: make(chan struct{})}
}

// AdoptedAttempt returns one that was started in an earlier life.
func AdoptedAttempt(t executor.Task) Attempt {
	a := NewAttempt(t)
	close(a.accepted)
	return a
}

// IsKept reports whether the files that it has left are kept until it is forgotten.
// REQUIRES: the handler's lock held, and it has ended.
func (a *Attempt) IsKept() bool { return a.Task.Outputs.Kept(a.Ended.Result) }

// Common implements [Record].
func (a *Attempt) Common() *Attempt { return a }

// Accepted is closed when Start is decided, one way or the other.
func (a *Attempt) Accepted() <-chan struct{} { return a.accepted }
