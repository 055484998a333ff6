package watchdog

import (
	"math"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// killMargin is how long before its fence an attempt gets KILL, so that it is
// dead, not dying, when the fence comes, also on a machine under load.
const killMargin = int64(500 * time.Millisecond)

// rekill is how long after a KILL the tree is looked at again.
const rekill = int64(20 * time.Millisecond)

// Never is a moment that does not come.
const Never = int64(math.MaxInt64)

// action is what must be done to an attempt now.
type action uint8

// The actions.
const (
	rest action = iota // nothing
	term               // send TERM to all of it
	kill               // send KILL to all of it
)

// plan decides when an attempt must be ended: a pure function of the clock. All
// times are CLOCK_BOOTTIME nanoseconds.
type plan struct {
	Fence   int64 // the task's own fence, 0 = none
	Timeout int64 // moment of the timeout, 0 = none
	Grace   int64 // between TERM and KILL
	// TermAt is when TERM was due, 0 = not yet. Invariant: set once.
	TermAt int64
	Cause  executor.Cause // valid once TermAt is set
}

// timeOut sets the timeout of what began at that moment.
func (p *plan) timeOut(began int64, after time.Duration) {
	if p.Timeout = began + int64(after); began > Never-int64(after) {
		p.Timeout = Never - 1
	}
}

// deadline returns the moment at which KILL must have been sent for the fence's
// sake. shared is the fence that covers all foreign attempts.
func (p *plan) deadline(shared int64) int64 {
	if p.Fence == 0 {
		return Never
	}
	return max(p.Fence, shared) - killMargin
}

// tooLate reports whether there is no time left to start at all.
func (p *plan) tooLate(now, shared int64) bool {
	d := p.deadline(shared)
	return d != Never && now >= d-p.Grace
}

// step returns what to do now and when to ask again, if nothing happens.
func (p *plan) step(now, shared int64, stop bool) (action, int64) {
	dead := p.deadline(shared)
	act := rest
	if p.TermAt == 0 {
		switch {
		case stop:
			p.Cause = executor.Stopped
		case dead != Never && now >= dead-p.Grace:
			p.Cause = executor.Fenced
		case p.Timeout != 0 && now >= p.Timeout:
			p.Cause = executor.TimedOut
		default:
			return rest, p.nextTerm(dead)
		}
		p.TermAt, act = now, term
	}
	if at := min(p.TermAt+p.Grace, dead); now < at {
		return act, at
	}
	return kill, now + rekill
}

func (p *plan) nextTerm(dead int64) int64 {
	wake := Never
	if dead != Never {
		wake = dead - p.Grace
	}
	if p.Timeout != 0 {
		wake = min(wake, p.Timeout)
	}
	return wake
}
