package local

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

const never = math.MaxInt64

// action is what a supervisor must do to its attempt.
type action uint8

const (
	rest action = iota
	term
	kill
)

// plan decides when an attempt must be ended: a pure function of the clock. All
// times are CLOCK_BOOTTIME nanoseconds.
type plan struct {
	fence   int64 // the task's own fence, 0 = none
	timeout int64 // moment of the timeout, 0 = none
	grace   int64
	// termAt is when TERM was due, 0 = not yet. Invariant: set once.
	termAt int64
	cause  executor.Cause // valid once termAt is set
}

// deadline is the moment at which KILL must have been sent for the fence's
// sake. shared is the fence that covers all foreign attempts.
func (p *plan) deadline(shared int64) int64 {
	if p.fence == 0 {
		return never
	}
	return max(p.fence, shared) - killMargin
}

// tooLate says that there is no time left to start at all.
func (p *plan) tooLate(now, shared int64) bool {
	d := p.deadline(shared)
	return d != never && now >= d-p.grace
}

// step returns what to do now and when to ask again, if nothing happens.
func (p *plan) step(now, shared int64, stop bool) (action, int64) {
	dead := p.deadline(shared)
	act := rest
	if p.termAt == 0 {
		switch {
		case stop:
			p.cause = executor.Stopped
		case dead != never && now >= dead-p.grace:
			p.cause = executor.Fenced
		case p.timeout != 0 && now >= p.timeout:
			p.cause = executor.TimedOut
		default:
			return rest, p.nextTerm(dead)
		}
		p.termAt, act = now, term
	}
	if at := min(p.termAt+p.grace, dead); now < at {
		return act, at
	}
	return kill, now + rekill
}

func (p *plan) nextTerm(dead int64) int64 {
	wake := int64(never)
	if dead != never {
		wake = dead - p.grace
	}
	if p.timeout != 0 {
		wake = min(wake, p.timeout)
	}
	return wake
}
