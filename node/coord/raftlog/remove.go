package raftlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Remove implements coord.Log. The last voter cannot be removed.
func (l *Log) Remove(ctx context.Context, site string) error {
	q := ask{kind: frameRemove, site: site}
	if _, err := l.ask(ctx, q, func(ctx context.Context) answer { return l.removeHere(ctx, site) }); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	return nil
}

// removeHere removes at the lead. A lead does not remove itself: it hands over
// and lets the next one do it.
func (l *Log) removeHere(_ context.Context, site string) answer {
	if !l.seq.leads() {
		return answer{code: answerRetry}
	}
	voters := l.voters()
	switch {
	case !slices.Contains(l.Status().Members, site):
		return answer{code: answerOK}
	case slices.Equal(voters, []raft.ServerID{raft.ServerID(site)}):
		return answer{code: answerRefused, text: "site " + site + " is the only voter: another site must become one first"}
	case site == l.cfg.Site:
		l.handOver()
		return answer{code: answerRetry}
	}
	if err := l.raft.RemoveServer(raft.ServerID(site), 0, l.t.enqueue).Error(); err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK}
}

// Demote implements coord.Log. Whether a member stands is known to itself only:
// a lead that looks for voters asks it.
func (l *Log) Demote(ctx context.Context, site string) error {
	if site != l.cfg.Site {
		return fmt.Errorf("demote site %.80q: %w: this is %s, and a site lays down its own vote: remove another's node instead",
			site, coord.ErrRefused, l.cfg.Site)
	}
	stood := !l.resting.Swap(true)
	_, err := l.ask(ctx, ask{kind: frameDemote}, func(ctx context.Context) answer { return l.demoteHere(ctx, site) })
	if err == nil {
		return nil
	}
	if stood && errors.Is(err, coord.ErrRefused) {
		l.Stand()
	}
	return fmt.Errorf("demote site %s: %w", site, err)
}

// Stand implements coord.Log.
func (l *Log) Stand() { l.resting.Store(false) }

// demoteHere demotes at the lead, if the other voters form a quorum among
// themselves now. A lead does not demote itself either.
func (l *Log) demoteHere(ctx context.Context, site string) answer {
	term, ok := l.seq.leading()
	if !ok {
		return answer{code: answerRetry}
	}
	id := raft.ServerID(site)
	voters := l.voters()
	rest := slices.DeleteFunc(slices.Clone(voters), func(v raft.ServerID) bool { return v == id })
	switch {
	case len(rest) == len(voters):
		return answer{code: answerOK}
	case len(rest) == 0:
		return answer{code: answerRefused, text: "site " + site + " is the only voter: another site must become one first"}
	case site == l.cfg.Site:
		l.handOver()
		return answer{code: answerRetry}
	}
	ctx, cancel := context.WithTimeout(ctx, l.t.lease)
	defer cancel()
	if err := l.trans.confirm(ctx, term, func() []raft.ServerID { return rest }); err != nil {
		if !l.seq.leads() {
			return answer{code: answerRetry}
		}
		return answer{code: answerRefused, term: term, text: fmt.Sprintf(
			"the other voters %v form no quorum without %s now: bring those that are away back, or remove them, first", rest, site)}
	}
	if err := l.raft.DemoteVoter(id, 0, l.t.enqueue).Error(); err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK}
}
