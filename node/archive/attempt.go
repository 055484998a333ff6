package archive

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Attempt is one attempt that ended, or tasks that ended without one (Number 0,
// Count of them from Task on).
type Attempt struct {
	Job    command.JobID // Job.Site is the owner
	Name   string
	Labels map[string]string
	Task   uint32
	Count  uint32 // 1, but for tasks that ended without an attempt
	Number uint32 // of the attempt, from 1
	Token  uint64
	Site   string // executor, "" without an attempt
	// Machine of the executor.
	Machine string
	Outcome fsm.Ending
	// Final: the task ended with it; else it waits for another attempt.
	Final bool
	// Home: its site ran it for itself, outside the log.
	Home     bool
	ExitCode int32
	Signal   int32
	Need     command.Resources // of one task
	// Moments for people, to the millisecond; zero = never, or not known.
	Submitted, Queued, Assigned, Started, Ended time.Time
	// EndedMs is log time, −1 at home: there is none.
	EndedMs int64
	// ChargedMs is the run that the ledger charged; at home, will charge.
	ChargedMs int64
	// Measured is what it used, as its site told.
	Measured command.Measured
	Index    uint64 // entry that told of the end; at home, the last one before
	Reason   string
}

// Owner returns the site whose user submitted the job.
func (a *Attempt) Owner() string { return a.Job.Site }

// comesAgain reports whether it is a run at home as its broker saw it, of which the log
// tells later, too.
func (a *Attempt) comesAgain() bool { return a.Home && a.EndedMs < 0 && a.ChargedMs > 0 }

// Ran reports whether its process ran.
func (a *Attempt) Ran() bool { return !a.Started.IsZero() }

// Wait returns how long it waited in the queue before it started; false if it did not.
func (a *Attempt) Wait() (time.Duration, bool) {
	if a.Started.IsZero() || a.Queued.IsZero() {
		return 0, false
	}
	return max(0, a.Started.Sub(a.Queued)), true
}

// Run returns how long its process ran, by its dates.
func (a *Attempt) Run() time.Duration {
	if a.Started.IsZero() || a.Ended.IsZero() {
		return 0
	}
	return max(0, a.Ended.Sub(a.Started))
}

// CoreMs returns what it used: milli-cores times charged milliseconds.
func (a *Attempt) CoreMs() int64 {
	hi := a.Need.MilliCPU
	if a.ChargedMs <= 0 || hi <= 0 {
		return 0
	}
	if product := hi * a.ChargedMs; product/hi == a.ChargedMs {
		return product
	}
	return 1<<63 - 1
}

// LogMs turns one of the attempt's moments into log time; −1 if it has none.
func (a *Attempt) LogMs(at time.Time) int64 {
	if a.EndedMs < 0 || at.IsZero() || a.Ended.IsZero() {
		return -1
	}
	return max(0, a.EndedMs-a.Ended.Sub(at).Milliseconds())
}

// Gap is a stretch of the log whose attempts are not in the archive: a snapshot
// replaced them, or the broker fell behind its own feed.
type Gap struct {
	From, To uint64    // entries, (From, To]
	Since    time.Time // of the last thing known before; zero = nothing was
	Until    time.Time // when the archive went on
	Reason   string
}
