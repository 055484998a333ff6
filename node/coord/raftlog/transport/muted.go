package transport

import (
	"errors"

	"github.com/hashicorp/raft"
)

// ErrMuted answers raft's heartbeats while this leader is silent.
var ErrMuted = errors.New("silent: the disk of this leader hangs")

// SetMuted stops or resumes what this member sends as a leader; it says whether that
// changed anything.
func (t *Transport) SetMuted(yes bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed = t.muted != yes
	t.muted = yes
	return changed
}

// MostCompleteVoter returns the follower among the voters that has most of the log.
func (t *Transport) MostCompleteVoter(voters []raft.ServerID) (id raft.ServerID, addr raft.ServerAddress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var best *progress
	for _, v := range voters {
		if p := t.peers[v]; p != nil && p.addr != "" && (best == nil || p.match > best.match ||
			p.match == best.match && p.at.After(best.at)) {
			best, id, addr = p, v, p.addr
		}
	}
	return id, addr
}

// RequestElection tells a voter to stand for leader, and calls failed if it was not told.
func (t *Transport) RequestElection(successor raft.ServerID, addr raft.ServerAddress, failed func(error)) {
	t.wg.Go(func() {
		req := raft.TimeoutNowRequest{RPCHeader: t.self}
		if err := t.TimeoutNow(successor, addr, &req, new(raft.TimeoutNowResponse)); err != nil {
			failed(err)
		}
	})
}
