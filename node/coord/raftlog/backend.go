package raftlog

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// backend is the raft log as the calls see it; its indexes are raft's.
type backend struct{ *Log }

var _ relay.Backend = backend{}

// Lead implements relay.Backend.
func (b backend) Lead() (to relay.Peer, self bool) { return b.lead() }

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

// Confirm implements relay.Backend. It waits as long as raft lets a lead go on
// without a quorum.
func (b backend) Confirm(ctx context.Context, term uint64) (index uint64, err error) {
	index = b.raft.CommitIndex()
	return index, b.trans.confirm(ctx, term, b.voters)
}

// With implements relay.Backend.
func (b backend) With(f func(coord.Machine)) { b.machine.call(f) }

// Closed implements relay.Backend.
func (b backend) Closed() error { return b.life.Closed() }

// voters of the newest configuration.
func (l *Log) voters() (ids []raft.ServerID) {
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
