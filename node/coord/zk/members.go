package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Remove implements coord.Log. The last voter cannot be removed.
func (l *Log) Remove(ctx context.Context, site string) error {
	if err := l.calls.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	return nil
}

// Demote implements coord.Log.
func (l *Log) Demote(ctx context.Context, site string) error {
	return l.calls.Demote(ctx, site, &l.resting, l.Stand)
}

// Stand implements coord.Log.
func (l *Log) Stand() {
	l.resting.Store(false)
	coord.Signal(l.kick)
}

// errOnlyVoter is the refusal to lose the last one.
func errOnlyVoter(site string) error {
	return fmt.Errorf("site %s is the only voter: another site must become one first", site)
}

// Remove implements relay.Backend. A lead does not remove itself: it hands over
// and lets the next one do it.
func (b backend) Remove(ctx context.Context, site string) error {
	r := b.reign.Load()
	rest, _ := b.group.rest(site)
	switch {
	case r == nil || !b.calls.Leads():
		return relay.ErrRetry
	case !slices.Contains(b.group.status().Members, site):
		return nil
	case len(rest) == 0:
		return errOnlyVoter(site)
	case site == b.cfg.Site:
		b.handOver(ctx)
		return relay.ErrRetry
	}
	return b.unlist(ctx, r, pathMembers+"/"+site, pathVoters+"/"+site)
}

// Demote implements relay.Backend: at least one other voter must be connected. A
// lead does not demote itself either.
func (b backend) Demote(ctx context.Context, site string) error {
	r := b.reign.Load()
	rest, present := b.group.rest(site)
	switch {
	case r == nil || !b.calls.Leads():
		return relay.ErrRetry
	case !b.group.isVoter(site):
		return nil
	case len(rest) == 0:
		return errOnlyVoter(site)
	case present == 0:
		return fmt.Errorf("no other voter of %v is connected now: bring one back first", rest)
	case site == b.cfg.Site:
		b.handOver(ctx)
		return relay.ErrRetry
	}
	return b.unlist(ctx, r, pathVoters+"/"+site)
}

// unlist deletes znodes, and waits until that is seen here.
func (b backend) unlist(ctx context.Context, r *reign, paths ...string) error {
	for _, p := range paths {
		_, err := b.c.writeHere(ctx, b.c.check(pathLead, r.version), b.c.remove(p))
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case transient(err), errors.Is(err, zk.ErrBadVersion):
			return relay.ErrRetry
		default:
			return b.c.name("delete", p, err)
		}
	}
	coord.Signal(b.kick)
	return nil
}

// stand makes this member a voter again, if it wants to be one and is a member.
func (l *Log) stand(ctx context.Context) error {
	if l.resting.Load() || l.group.isVoter(l.cfg.Site) || !slices.Contains(l.group.status().Members, l.cfg.Site) {
		return nil
	}
	return l.c.ensure(ctx, pathVoters+"/"+l.cfg.Site, nil)
}
