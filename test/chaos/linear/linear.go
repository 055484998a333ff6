// Package linear judges whether what clients saw of a federation could have come
// from one copy that does one thing at a time: linearizability, searched for by
// porcupine. It is pure: operations and their times are handed in.
//
// An operation without an answer may have taken effect at any time after, or
// never. A read that a broker answers from its own state may be old by design, so
// it counts at that broker only; a confirmed read ([Op.Current]) counts for the
// whole federation.
package linear

import (
	"fmt"
	"math"
	"time"
)

// Kind of an operation.
type Kind string

// The kinds.
const (
	Submit    Kind = "submit"
	Cancel    Kind = "cancel"
	Look      Kind = "look" // at one job
	SetPolicy Kind = "set policy"
	GetPolicy Kind = "get policy"
)

// Phase of a job, as far as users were promised something about it.
type Phase string

// The phases. A job that is over does not live again.
const (
	Absent Phase = ""       // the broker knows no such job
	Live   Phase = "live"   // a task may still start or go on
	Over   Phase = "over"   // ended, or all that is left of it is being stopped
	Double Phase = "double" // shown twice: no state explains that
)

// Op is one operation of one client, with its answer.
type Op struct {
	Kind Kind
	At   string // broker asked

	Job   string // what its client calls it: one key, one job
	Owner string // broker that was sent the job
	ID    string // of the job, acknowledged or shown
	Phase Phase  // shown
	// Durable submissions were acknowledged as known to the whole federation.
	Durable bool

	Value int64 // of the policy: set or shown. Invariant: no value is set twice.

	// Current reads were confirmed to be no older than their request.
	Current bool
	// Answered: a success, or an answer that says as much. Anything else leaves the
	// outcome unknown.
	Answered bool
	// Call and Return are times of one monotonic clock. Return is meant only if
	// Answered.
	Call, Return time.Duration
}

// String returns the operation and its answer, without the times.
func (o Op) String() string {
	var text string
	switch o.Kind {
	case SetPolicy:
		text = fmt.Sprintf("set policy %d at %s", o.Value, o.At)
	case GetPolicy:
		text = fmt.Sprintf("policy at %s is %d", o.At, o.Value)
	case Look:
		text = fmt.Sprintf("%s at %s is %s %s", o.Job, o.At, shownPhase(o.Phase), o.ID)
	case Submit, Cancel:
		text = fmt.Sprintf("%s %s at %s: %s", o.Kind, o.Job, o.At, o.ID)
	}
	switch {
	case !o.Answered:
		text += " (no answer)"
	case o.Current:
		text += " (confirmed)"
	}
	return text
}

func shownPhase(p Phase) string {
	if p == Absent {
		return "absent"
	}
	return string(p)
}

// isRead reports whether the operation changes nothing.
func (o Op) isRead() bool { return o.Kind == Look || o.Kind == GetPolicy }

// end returns when the operation had taken effect at the latest.
func (o Op) end() int64 {
	if !o.Answered {
		return math.MaxInt64
	}
	return int64(o.Return)
}
