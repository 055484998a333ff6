// Package check judges a chaos run from outside: by what clients were told, by
// what the API showed, by the marks that the tasks left, and by nothing else.
// It is pure, so that its own tests can show each violation being found.
package check

import (
	"fmt"
	"slices"
	"time"
)

// Rule names a promise; mutation checks ask for violations of a named one.
type Rule string

// The promises.
const (
	OneEnd    Rule = "one-end"    // an acknowledged job reaches exactly one end
	Overlap   Rule = "overlap"    // attempts of a fenced task do not overlap
	Twice     Rule = "twice"      // a never task starts at most once
	OneJob    Rule = "one-job"    // one key, one job
	TrueEnd   Rule = "true-end"   // the end that is shown is the last attempt's, or of an immediate task the first success
	TokenGrow Rule = "token-grow" // (token, attempt) only grows
	ZeroSum   Rule = "zero-sum"   // priorities sum to zero, at every broker
	Recount   Rule = "recount"    // the ledger is what the runs were
	SameState Rule = "same-state" // equal entry, equal hash
	Progress  Rule = "progress"   // after healing, work goes on in time
	NoError   Rule = "no-error"   // clients see latency, not errors
	NoPanic   Rule = "no-panic"   // no broker panics or ends by itself
	Withdrawn Rule = "withdrawn"  // what cannot end waits for an absent owner, visibly
	Stopped   Rule = "stopped"    // a cut-off site stops foreign tasks inside the lease
	Once      Rule = "once"       // a command is executed once, however often it is sent
	Cancelled Rule = "cancelled"  // what was acknowledged to be cancelled is not started any more
	Alone     Rule = "alone"      // a site alone goes on with its own users' jobs
	Linear    Rule = "linear"     // answers could have come from one copy
	Delivered Rule = "delivered"  // what a task left is with its owner, and is that of the attempt that counts
	Majority  Rule = "majority"   // what is the federation's is known to most voters
	Early     Rule = "early"      // nothing starts before what it waits for has ended as asked
	InVain    Rule = "in-vain"    // what can no longer start is cancelled, with its reason
	Parallel  Rule = "parallel"   // no more tasks of a job run than may at a time
	Retries   Rule = "retries"    // a task is tried again after its pause, and only if its job wants that
	ByHand    Rule = "by-hand"    // what is held by hand begins nothing until it is let go
)

// Violation is a broken promise.
type Violation struct {
	Rule Rule
	Text string
}

// String returns one line.
func (v Violation) String() string { return string(v.Rule) + ": " + v.Text }

func broken(r Rule, format string, args ...any) Violation {
	return Violation{r, fmt.Sprintf(format, args...)}
}

// What a loss means to a job, as specs write it.
const (
	Fenced    = "fenced"
	Immediate = "immediate"
	Never     = "never"
)

// Ordered is what a client asked for and was told.
type Ordered struct {
	Name   string // of the job; no two orders share one
	Owner  string // site addressed
	OnLoss string
	Count  int
	Exit   int      // exit code of its tasks when they run to their end
	Tries  int      // attempts that may fail, by max_attempts and exit codes
	Barred bool     // its exit code is one after which it is not tried again
	Files  bool     // its tasks take a file and leave one
	IDs    []string // of every acknowledgement; empty: never acknowledged
	Cancel bool     // a cancel was sent
	// Cancelled is the entry at which that was acknowledged, 0 = it was not.
	Cancelled uint64
	Refused   string // an answer that no client should get

	After    []Wait
	Parallel int           // tasks that may run at a time, 0 = all
	Backoff  time.Duration // after a first failure
	Vain     []int         // tasks that can never begin, by Flow.Vain
}

// Shown is a job as a broker shows it at the end.
type Shown struct {
	ID, Name, State string
	Tasks           []ShownTask
}

// ShownTask is a task as a broker shows it.
type ShownTask struct {
	Index         int
	State, Reason string
	Site          string
	Attempt       int
	Token         uint64
	RunMs         int64 // ended_at − started_at, -1 if one is missing
	ExitCode      *int
	Away          string // why files that it left, and no success waited for, are not at its owner
}

// Ends returns the states that do not change any more.
func Ends() []string { return []string{"succeeded", "failed", "cancelled", "lost"} }

func isEnd(state string) bool { return slices.Contains(Ends(), state) }
