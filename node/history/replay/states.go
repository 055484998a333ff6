package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/replica"
)

// begin takes a state.
func (v *verifier) begin(first *history.Record) error {
	r := &stateReader{t: v.t, rest: first.Contents}
	chain, state, err := replica.ReadSnapshot(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	switch {
	case errors.Is(err, fsm.ErrNewVersion):
		return err
	case err != nil:
		v.differ(Difference{Kind: Damaged, Entry: v.index(), What: fmt.Sprintf("a state cannot be read: %v", err)})
		return nil
	case state.Index() != r.begun.Number:
		v.differ(Difference{Kind: Damaged, Entry: v.index(), What: fmt.Sprintf("a state of entry %d is said to be of entry %d",
			state.Index(), r.begun.Number)})
		return nil
	}
	v.passing = nil
	damaged := v.passHole(state.Index())
	switch {
	case v.state == nil:
	case state.Index() < v.state.Index():
		v.goBack(chain, state.Index())
		return nil
	case state.Index() == v.state.Index():
		v.matches(chain, state)
	default:
		if v.crossGap(state); v.report.Difference != nil {
			return nil
		}
	}
	v.replace(chain, state, damaged)
	return nil
}

// matches compares a state that is given with the one that the entries before have led to.
func (v *verifier) matches(chain replica.Chain, given *fsm.State) {
	own, its := v.state.Hash(), given.Hash()
	if chain != v.chain || own != its {
		v.differ(Difference{Kind: State, Entry: v.index(), What: fmt.Sprintf(
			"%s begins with the state %s, and the entries before lead to %s", v.t.Name(), short(its[:]), short(own[:]))})
	}
}

// replace goes on from a state that is given; damaged: entries before it are there, and cannot be gone through.
func (v *verifier) replace(chain replica.Chain, state *fsm.State, damaged bool) {
	before, follows := v.state, v.state != nil && v.state.Index() == state.Index()
	if before != nil {
		v.report.Decisions += before.Stats().Decisions - v.from
		if !follows {
			v.report.Gaps = append(v.report.Gaps, Gap{
				Behind: before.Index(), To: state.Index(), SignedBy: []string{}, Damaged: damaged,
			})
		}
	}
	v.state, v.chain, v.from = state, chain, state.Stats().Decisions
	v.roster = 0
	v.noteKeys()
	if before != nil && !follows {
		v.word = state.Index()
	}
	if before == nil {
		v.report.KeptBy, v.report.Begin = v.t.Header().Site, v.point()
		v.account(func(a *Account) *Standing { return &a.Begin })
	}
	if !follows {
		v.compare(before == nil)
	}
}

// point returns the moment of now.
func (v *verifier) point() Point {
	h := v.state.Hash()
	return Point{
		Entry: v.state.Index(), LogTimeMs: v.state.Time(), Chain: hex.EncodeToString(v.chain[:]),
		State: hex.EncodeToString(h[:]), SignedBy: []string{},
	}
}
