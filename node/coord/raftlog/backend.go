package raftlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// backend is the raft log as the calls see it; its indexes are raft's.
type backend struct{ *Log }

var _ relay.Backend = backend{}

// Lead implements relay.Backend.
func (b backend) Lead() (to relay.Peer, self bool) { return b.leader() }

// Orders implements relay.Backend.
func (b backend) Orders() (term uint64, ok bool) {
	ok = b.raft.State() == raft.Leader
	return b.raft.CurrentTerm(), ok
}

// Term implements relay.Backend.
func (b backend) Term() uint64 { return b.raft.CurrentTerm() }

// Append implements relay.Backend.
func (b backend) Append(_ uint64, data, header []byte) (wait func() (relay.Outcome, uint64)) {
	f := b.raft.ApplyLog(raft.Log{Data: data, Extensions: header}, b.t.enqueue)
	return func() (relay.Outcome, uint64) {
		if o := classify(f); o != relay.Ordered {
			return o, 0
		}
		return relay.Ordered, f.Index()
	}
}

// classify waits for the future. Refused are the three errors that raft gives
// before it appends, and an entry that every member skips.
func classify(f raft.ApplyFuture) relay.Outcome {
	err := f.Error()
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return relay.Refused
	case err != nil:
		return relay.Unknown
	}
	if failed, ok := f.Response().(error); ok {
		if errors.Is(failed, errVoid) {
			return relay.Refused
		}
		return relay.Unknown
	}
	return relay.Ordered
}

// Confirm implements relay.Backend. It waits as long as raft lets a leader go on
// without a quorum.
func (b backend) Confirm(ctx context.Context, term uint64) (index uint64, err error) {
	index = b.raft.CommitIndex()
	return index, b.trans.Confirm(ctx, term, b.voters)
}

// With implements relay.Backend.
func (b backend) With(f func(coord.Machine)) { b.machine.call(f) }

// Closed implements relay.Backend.
func (b backend) Closed() error { return b.ClosedError() }

// voters of the newest configuration.
func (l *Log) voters() []raft.ServerID { return votersOf(l.raft) }

func votersOf(r *raft.Raft) (ids []raft.ServerID) {
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Remove implements relay.Backend. A leader does not remove itself: it hands over
// and lets the next one do it.
func (b backend) Remove(_ context.Context, site string) error {
	l := b.Log
	if !l.Calls.Leads() {
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
	if err := outcome(l.Ctx, l.raft.RemoveServer(raft.ServerID(site), 0, l.t.enqueue)); err != nil {
		return relay.ErrRetry
	}
	return nil
}

// Demote implements relay.Backend: it demotes at the leader, if the other voters form a quorum among
// themselves now. A leader does not demote itself either.
func (b backend) Demote(ctx context.Context, site string) error {
	l := b.Log
	term, ok := l.Calls.Leading()
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
	if err := l.trans.Confirm(ctx, term, func() []raft.ServerID { return rest }); err != nil {
		if !l.Calls.Leads() {
			return relay.ErrRetry
		}
		return fmt.Errorf("the other voters %v form no quorum without %s now: bring those that are away back, or remove them, first",
			rest, site)
	}
	// Whoever reaches the peer port may ask in its name; what it wants it says itself.
	if at := l.configuredPeer(site); l.voting.isWilling(l.Ctx, id, transport.ServerAddress(site, at.Addr)) {
		return fmt.Errorf("site %s says at %s that it stands for voter", site, at.Addr)
	}
	if err := outcome(l.Ctx, l.raft.DemoteVoter(id, 0, l.t.enqueue)); err != nil {
		return relay.ErrRetry
	}
	return nil
}

// configuredPeer returns a member as the newest configuration has it; none if it is
// not in it.
func (l *Log) configuredPeer(site string) relay.Peer {
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if string(s.ID) == site {
			return relay.Peer{Site: site, Addr: transport.HostPort(s.Address)}
		}
	}
	return relay.Peer{}
}

// leader says where calls go now: to this member, to another, or to nobody. The
// address is the one that was dialed back (join.go); what the leader says of
// itself counts for a new member only, which has no configuration yet.
func (l *Log) leader() (to relay.Peer, self bool) {
	a, id := l.raft.LeaderWithID()
	if id == "" {
		return relay.Peer{}, false
	}
	if to = l.configuredPeer(string(id)); to.None() {
		to = relay.Peer{Site: string(id), Addr: transport.HostPort(a)}
	}
	return to, string(id) == l.cfg.Site
}
