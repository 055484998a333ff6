package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Confirming the leader means: at a moment after the call began, a majority of
// the voters had not yet gone on to a later term. raft's own VerifyLeader is
// not enough for that: it counts the answers of non-voters, and an answer to a
// request that was sent before the call (it waits in a socket while this
// process is stopped, say). So the transport numbers rounds: confirm begins a
// round, each request notes the round in which it was sent, and only answers to
// requests of this round or a later one count, from voters only. It also asks
// the few voters only, where VerifyLeader sends to every member.

// ErrDeposed reports that another term has begun, by what half of the voters say, or no majority
// answered in time.
var ErrDeposed = errors.New("leadership not confirmed")

// Confirm returns nil once a majority of the voters, asked after the call
// began, has answered this member as the leader of term.
func (t *Transport) Confirm(ctx context.Context, term uint64, voters func() []raft.ServerID) error {
	t.mu.Lock()
	t.beginTerm(term)
	t.round++
	round := t.round
	t.mu.Unlock()
	for {
		wait := t.acked.Wait()
		switch ok, err := t.majority(term, round, voters()); {
		case err != nil:
			return err
		case ok:
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrDeposed, context.Cause(ctx))
		}
	}
}

// majority counts the answers, and asks whom no request of the round went to.
func (t *Transport) majority(term, round uint64, voters []raft.ServerID) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != term || t.closed {
		return false, ErrDeposed
	}
	acks, later := 0, 0
	for _, id := range voters {
		if id == raft.ServerID(t.self.ID) {
			acks++
			continue
		}
		p := t.progressOf(id)
		if p.said > term {
			later++
		}
		if p.acked >= round {
			acks++
		} else if p.wanted < round {
			p.wanted = round
			t.probe(id, p)
		}
	}
	if 2*later >= len(voters) { // fewer are no proof: one of them may say any term
		return false, ErrDeposed
	}
	return 2*acks > len(voters), nil
}

// probe sends a heartbeat, as raft does, until one was sent in the newest round
// that is wanted. One a follower is under way at most: it may be unreachable.
//
// REQUIRES: t.mu held.
func (t *Transport) probe(id raft.ServerID, p *progress) {
	if p.probing || p.addr == "" {
		return // without an address raft has not reached it yet, and will tell
	}
	p.probing = true
	target := p.addr
	req := &raft.AppendEntriesRequest{RPCHeader: t.self, Term: t.term}
	t.wg.Go(func() {
		for again := true; again; {
			var resp raft.AppendEntriesResponse
			round, _ := t.send(id, target, req, &resp) // an error is an answer that does not come
			t.mu.Lock()
			again = p.wanted > round && t.term == req.Term && !t.closed
			p.probing = again
			t.mu.Unlock()
		}
	})
}
