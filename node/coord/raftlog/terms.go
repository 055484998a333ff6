package raftlog

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A raft member takes any greater term for its own and stores it before it looks at
// anything else. So one request of a stranger, with the greatest term there is, ends a
// federation: no election can raise it any more. Bounds of what a peer may make of
// this member's term:
const (
	// maxTerm is the greatest term at all. With one election a second it is reached
	// after nine million years.
	maxTerm = 1 << 48
	// maxAhead is how far a peer's term may be ahead of this member's, which was
	// away: twelve days of one election a second. A member without a log may be
	// behind by any number.
	maxAhead = 1 << 20
	// freeRise is how far terms rise without suspicion within riseWithin. More is
	// believed once in jumpEvery: so maxTerm is out of a stranger's reach for
	// centuries, and members that hear each other stay within maxAhead.
	freeRise   = 1 << 10
	riseWithin = time.Second
	jumpEvery  = time.Minute
)

// errTerm: a peer names a term that no election led to.
var errTerm = errors.New("absurd term")

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
	if theirs > maxTerm {
		return fmt.Errorf("%w %d: the greatest is %d, and this broker is in term %d", errTerm, theirs, uint64(maxTerm), ours)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.begun) >= riseWithin {
		g.begun, g.base = now, ours
	}
	switch {
	case fresh, theirs-min(g.base, theirs) <= freeRise:
		return nil
	case theirs-ours > maxAhead:
		return fmt.Errorf("%w %d: more than %d ahead of this broker's %d: if the federation is really there, "+
			"set this broker's data directory aside and join as a new site", errTerm, theirs, maxAhead, ours)
	case now.Before(g.jump):
		return fmt.Errorf("%w %d: the second jump within %v, this broker is in term %d", errTerm, theirs, jumpEvery, ours)
	}
	g.base, g.jump = theirs, now.Add(jumpEvery)
	return nil
}

// Where raft keeps its term and the term of its last vote.
var (
	keyCurrentTerm  = []byte("CurrentTerm")
	keyLastVoteTerm = []byte("LastVoteTerm")
)

// ErrTerm reports that the data directory holds a term from which no election goes on.
var ErrTerm = errors.New("the data directory holds an absurd term")

// checkTerm refuses a store in which such a term was saved before terms were bounded.
func checkTerm(s *store, dir string) error {
	term, err := s.GetUint64(keyCurrentTerm)
	if err != nil || term <= maxTerm || noTermBound {
		return nil //nolint:nilerr // raft reads it again, and says so
	}
	return fmt.Errorf("%w: %d in %s, and no election goes on from there: if other voters run, set the directory aside and join as a new site; "+
		"if all voters say this, stop them, run cloudshare recover on one, and --follow on the others (cloudshare guide operator)", ErrTerm, term, dir)
}

// stuck says that the member cannot start for its term.
func (s *survivor) stuck() bool {
	term, err := s.store.GetUint64(keyCurrentTerm)
	return err == nil && term > maxTerm
}

// alone says that the member is the only voter.
func (v *Survey) alone() bool {
	return !slices.ContainsFunc(v.Peers, func(p Peer) bool { return p.Voter && p.Site != v.Site })
}

// lowerTerm replaces an absurd term by that of the newest snapshot, which holds all
// there is: the members of the new lineage hear nothing of the former one's votes.
func (s *survivor) lowerTerm() error {
	if !s.stuck() {
		return nil
	}
	list, err := s.snaps.List()
	if err != nil || len(list) == 0 {
		return fmt.Errorf("list snapshots: %w", errors.Join(err, ErrNoData))
	}
	if list[0].Term > maxTerm {
		return fmt.Errorf("%w: entries of term %d are in its log: take another survivor", ErrTerm, list[0].Term)
	}
	if err = s.store.SetUint64(keyLastVoteTerm, 0); err == nil {
		err = s.store.SetUint64(keyCurrentTerm, list[0].Term)
	}
	if err != nil {
		return fmt.Errorf("lower the term: %w", err)
	}
	return nil
}
