package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// errOnlyVoter returns the refusal to lose the last one.
func errOnlyVoter(site string) error {
	return fmt.Errorf("site %s is the only voter: another site must become one first", site)
}

// Remove implements relay.Backend. A leader does not remove itself: it hands over
// and lets the next one do it.
func (b backend) Remove(ctx context.Context, site string) error {
	r := b.leaderTerm.Load()
	rest, _ := b.group.otherVoters(site)
	switch {
	case r == nil || !b.Calls.Leads():
		return relay.ErrRetry
	case !slices.Contains(b.group.status().Members, site):
		return nil
	case len(rest) == 0:
		return errOnlyVoter(site)
	case site == b.cfg.Site:
		b.handOver(ctx)
		return relay.ErrRetry
	}
	return b.unlist(ctx, r, tree.MembersPath+"/"+site, tree.VotersPath+"/"+site)
}

// Demote implements relay.Backend: at least one other voter must be connected. A
// leader does not demote itself either.
func (b backend) Demote(ctx context.Context, site string) error {
	r := b.leaderTerm.Load()
	rest, present := b.group.otherVoters(site)
	switch {
	case r == nil || !b.Calls.Leads():
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
	return b.unlist(ctx, r, tree.VotersPath+"/"+site)
}

// unlist deletes znodes, and waits until that is seen here.
func (b backend) unlist(ctx context.Context, r *leaderTerm, paths ...string) error {
	for _, p := range paths {
		_, err := b.c.writeHere(ctx, b.c.check(tree.LeadPath, r.version), b.c.remove(p))
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case transient(err), errors.Is(err, zk.ErrBadVersion):
			return relay.ErrRetry
		default:
			return b.c.wrapError("delete", p, err)
		}
	}
	coord.Signal(b.kick)
	return nil
}

// ensureVoter makes this member a voter again, if it wants to be one and is a member.
func (l *Log) ensureVoter(ctx context.Context) error {
	if l.Resting() || l.group.isVoter(l.cfg.Site) || !slices.Contains(l.group.status().Members, l.cfg.Site) {
		return nil
	}
	return l.c.ensure(ctx, tree.VotersPath+"/"+l.cfg.Site, nil)
}
