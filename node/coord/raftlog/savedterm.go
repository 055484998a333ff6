package raftlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
)

// Where raft keeps its term and the term of its last vote.
var (
	keyCurrentTerm  = []byte("CurrentTerm")
	keyLastVoteTerm = []byte("LastVoteTerm")
)

// ErrTerm reports whether the data directory holds a term from which no election goes on.
var ErrTerm = errors.New("the data directory holds an absurd term")

// checkTerm refuses a store in which such a term was saved before terms were bounded.
func checkTerm(s *store.Store, dir string) error {
	term, err := s.GetUint64(keyCurrentTerm)
	if err != nil || !transport.IsAbsurdTerm(term) {
		return nil //nolint:nilerr // raft reads it again, and says so
	}
	return fmt.Errorf("%w: %d in %s, and no election goes on from there: if other voters run, set the directory aside and come back on an empty one as after a wiped disk (cloudshare guide operator); "+
		"if all voters say this, stop them, run cloudshare recover on one, and --follow on the others (cloudshare guide operator)", ErrTerm, term, dir)
}

// termTooHigh reports whether the member cannot start for its term.
func (s *survivor) termTooHigh() bool {
	term, err := s.store.GetUint64(keyCurrentTerm)
	return err == nil && transport.IsAbsurdTerm(term)
}

// isOnlyVoter reports whether the member is the only voter.
func (v *Survey) isOnlyVoter() bool {
	return !slices.ContainsFunc(v.Peers, func(p Peer) bool { return p.Voter && p.Site != v.Site })
}

// lowerTerm replaces an absurd term by that of the newest snapshot, which holds all
// there is: the members of the new lineage hear nothing of the former one's votes.
func (s *survivor) lowerTerm() error {
	if !s.termTooHigh() {
		return nil
	}
	list, err := s.snaps.List()
	if err != nil || len(list) == 0 {
		return fmt.Errorf("list snapshots: %w", errors.Join(err, ErrNoData))
	}
	if transport.IsAbsurdTerm(list[0].Term) {
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
