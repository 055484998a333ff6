package raftlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Remove implements coord.Log. The last voter cannot be removed.
func (l *Log) Remove(ctx context.Context, site string) error {
	if err := l.calls.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	return nil
}

// Remove implements relay.Backend. A lead does not remove itself: it hands over
// and lets the next one do it.
func (b backend) Remove(_ context.Context, site string) error {
	l := b.Log
	if !l.calls.Leads() {
		return relay.ErrRetry
	}
	voters := l.voters()
	switch {
	case !slices.Contains(l.Status().Members, site):
		return nil
	case slices.Equal(voters, []raft.ServerID{raft.ServerID(site)}):
		return errors.New("site " + site + " is the only voter: another site must become one first")
	case site == l.cfg.Site:
		l.handOver()
		return relay.ErrRetry
	}
	if err := l.raft.RemoveServer(raft.ServerID(site), 0, l.t.enqueue).Error(); err != nil {
		return relay.ErrRetry
	}
	return nil
}

// Demote implements coord.Log. Whether a member stands is known to itself only:
// a lead that looks for voters asks it.
func (l *Log) Demote(ctx context.Context, site string) error {
	return l.calls.Demote(ctx, site, &l.resting, l.Stand)
}

// Stand implements coord.Log.
func (l *Log) Stand() { l.resting.Store(false) }

// Demote implements relay.Backend: it demotes at the lead, if the other voters form a quorum among
// themselves now. A lead does not demote itself either.
func (b backend) Demote(ctx context.Context, site string) error {
	l := b.Log
	term, ok := l.calls.Leading()
	if !ok {
		return relay.ErrRetry
	}
	id := raft.ServerID(site)
	voters := l.voters()
	rest := slices.DeleteFunc(slices.Clone(voters), func(v raft.ServerID) bool { return v == id })
	switch {
	case len(rest) == len(voters):
		return nil
	case len(rest) == 0:
		return errors.New("site " + site + " is the only voter: another site must become one first")
	case site == l.cfg.Site:
		l.handOver()
		return relay.ErrRetry
	}
	ctx, cancel := context.WithTimeout(ctx, l.t.lease)
	defer cancel()
	if err := l.trans.confirm(ctx, term, func() []raft.ServerID { return rest }); err != nil {
		if !l.calls.Leads() {
			return relay.ErrRetry
		}
		return fmt.Errorf("the other voters %v form no quorum without %s now: bring those that are away back, or remove them, first",
			rest, site)
	}
	if err := l.raft.DemoteVoter(id, 0, l.t.enqueue).Error(); err != nil {
		return relay.ErrRetry
	}
	return nil
}
