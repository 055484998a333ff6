package transport

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A raft member takes any greater term for its own and stores it before it looks at
// anything else. So one request of a stranger, with the greatest term there is, ends a
// federation: no election can raise it any more. Bounds of what a peer may make of
// this member's term:
const (
	// MaxTerm is the greatest term at all. With one election a second it is reached
	// after nine million years.
	MaxTerm = 1 << 48
	// MaxAhead is how far a peer's term may be ahead of this member's, which was
	// away: twelve days of one election a second. A member without a log may be
	// behind by any number.
	MaxAhead = 1 << 20
	// freeRise is how far terms rise without suspicion within riseWithin. More is
	// believed once in jumpEvery: so MaxTerm is out of a stranger's reach for
	// centuries, and members that hear each other stay within MaxAhead.
	freeRise   = 1 << 10
	riseWithin = time.Second
	jumpEvery  = time.Minute
)

// ErrAbsurdTerm reports a peer that names a term that no election led to.
var ErrAbsurdTerm = errors.New("absurd term")

// termGuard decides which terms of peers are believed.
type termGuard struct {
	mu    sync.Mutex
	begun time.Time // of the time in which terms rise from base
	base  uint64
	jump  time.Time // before it no jump is believed
}

// check judges a peer's term; fresh says that this member has no log yet.
func (g *termGuard) check(ours, theirs uint64, fresh bool, now time.Time) error {
	if theirs <= ours || noTermBound {
		return nil
	}
	if theirs > MaxTerm {
		return fmt.Errorf("%w %d: the greatest is %d, and this broker is in term %d", ErrAbsurdTerm, theirs, uint64(MaxTerm), ours)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.begun) >= riseWithin {
		g.begun, g.base = now, ours
	}
	switch {
	case fresh, theirs-min(g.base, theirs) <= freeRise:
		return nil
	case theirs-ours > MaxAhead:
		return fmt.Errorf("%w %d: more than %d ahead of this broker's %d: if the federation is really there, "+
			"set this broker's data directory aside and come back on an empty one as after a wiped disk (cloudshare guide operator)", ErrAbsurdTerm, theirs, MaxAhead, ours)
	case now.Before(g.jump):
		return fmt.Errorf("%w %d: the second jump within %v, this broker is in term %d", ErrAbsurdTerm, theirs, jumpEvery, ours)
	}
	g.base, g.jump = theirs, now.Add(jumpEvery)
	return nil
}

// IsAbsurdTerm reports whether no election leads to a term, nor goes on from there.
func IsAbsurdTerm(term uint64) bool { return term > MaxTerm && !noTermBound }
