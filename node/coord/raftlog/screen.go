package raftlog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Requests of peers are looked at before raft sees them: raft believes its members,
// and some requests that none sends end the process or the group. What a stranger can
// still do who greets with the federation's id is in DESIGN.md.

// errRequest: a raft request that no member sends.
var errRequest = errors.New("refused raft request")

// view is what the screen needs of raft.
type view interface {
	CurrentTerm() uint64
	LastIndex() uint64
	State() raft.RaftState
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	GetConfiguration() raft.ConfigurationFuture
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.screened }

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(handle func(raft.RPC)) {
	if handle == nil {
		t.heartbeat.Store(nil)
		return
	}
	t.heartbeat.Store(&handle)
}

// pass answers a request that must not reach raft with an error.
func (t *transport) pass(rpc raft.RPC) bool {
	r := t.raft.Load()
	if r == nil {
		rpc.Respond(&raft.AppendEntriesResponse{}, errRequest)
		return false
	}
	err := t.judge(*r, rpc.Command)
	if err != nil {
		t.complain(nil, err)
		rpc.Respond(&raft.AppendEntriesResponse{}, err)
	}
	return err == nil
}

// judge says why a request must not reach raft, or nil.
func (t *transport) judge(r view, command any) error {
	h, ok := command.(raft.WithRPCHeader)
	if !ok {
		return fmt.Errorf("%w: %T", errRequest, command)
	}
	from := h.GetRPCHeader()
	if len(from.ID) == 0 || len(from.Addr) == 0 {
		return fmt.Errorf("%w: %T of nobody", errRequest, command)
	}
	id := raft.ServerID(from.ID)
	switch c := command.(type) {
	case *raft.RequestVoteRequest:
		return t.believeIf(isVoter(r, id), r, c.Term, id)
	case *raft.RequestPreVoteRequest:
		return t.believeIf(isVoter(r, id), r, c.Term, id)
	case *raft.AppendEntriesRequest:
		return t.believeIf(errors.Join(t.leads.check(r, id, c.Term), checkEntries(c)), r, c.Term, id)
	case *raft.InstallSnapshotRequest:
		return t.believeIf(errors.Join(t.leads.check(r, id, c.Term), checkSnapshot(c)), r, c.Term, id)
	case *raft.TimeoutNowRequest:
		if _, leader := r.LeaderWithID(); leader != id {
			return fmt.Errorf("%w: %s hands over a leadership that it does not have", errRequest, id)
		}
		return nil
	}
	return fmt.Errorf("%w: %T", errRequest, command)
}

// believeIf believes the term of a request only if nothing else is wrong with it: a
// request that is refused anyway must not take the jump that a member may need.
func (t *transport) believeIf(refused error, r view, term uint64, id raft.ServerID) error {
	if refused != nil {
		return refused
	}
	return t.believe(r, term, id)
}

// believe checks a peer's term, of a request or of an answer.
func (t *transport) believe(r view, term uint64, id raft.ServerID) error {
	err := t.terms.check(r.CurrentTerm(), term, r.LastIndex() == 0, time.Now())
	if err != nil {
		return fmt.Errorf("raft message of %.80q: %w", id, err)
	}
	return nil
}

// isVoter refuses candidates that this member does not know as voters. raft refuses
// them, too, but some of them only after it has taken their term.
func isVoter(r view, id raft.ServerID) error {
	servers := r.GetConfiguration().Configuration().Servers
	if len(servers) == 0 || slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter }) {
		return nil
	}
	return fmt.Errorf("%w: %.80q asks for a vote and is no voter here", errRequest, id)
}

// termLeader is who first said that it leads the newest term that anybody leads. raft's
// own word for it does not do: a late heartbeat of the former leader may name that one
// after raft has gone to the next term.
type termLeader struct {
	mu   sync.Mutex
	term uint64
	id   raft.ServerID
}

// check refuses a second leader of one term, whom no majority can have elected.
func (l *termLeader) check(r view, id raft.ServerID, term uint64) error {
	if r.CurrentTerm() == term && r.State() == raft.Leader { // in this order: the term only grows
		return fmt.Errorf("%w: %.80q says that it leads term %d, and this member does", errRequest, id, term)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if term == l.term && id != l.id && term > 0 {
		return fmt.Errorf("%w: %.80q says that it leads term %d, and %s did first", errRequest, id, term, l.id)
	}
	if term > l.term && term <= r.CurrentTerm()+1 { // a term from nowhere makes no leader
		l.term, l.id = term, id
	}
	return nil
}

// checkEntries refuses entries that end the process of whoever stores or reads them.
func checkEntries(c *raft.AppendEntriesRequest) error {
	term := c.PrevLogTerm
	for i, e := range c.Entries {
		switch {
		case e == nil:
			return fmt.Errorf("%w: entry %d of %d is none", errRequest, i, len(c.Entries))
		case e.Index != c.PrevLogEntry+1+uint64(i) || e.Index == 0 || e.Term < term || e.Term == 0 || e.Term > c.Term:
			return fmt.Errorf("%w: entry %d of term %d behind entry %d of term %d", errRequest, e.Index, e.Term, c.PrevLogEntry+uint64(i), term)
		case e.Type == raft.LogConfiguration:
			if err := checkConfiguration(e.Data); err != nil {
				return err
			}
		case e.Type != raft.LogCommand && e.Type != raft.LogNoop && e.Type != raft.LogBarrier:
			return fmt.Errorf("%w: entry %d of type %d", errRequest, e.Index, e.Type)
		}
		term = e.Term
	}
	return nil
}

func checkSnapshot(c *raft.InstallSnapshotRequest) error {
	if c.SnapshotVersion != raft.SnapshotVersionMax || c.Size < 0 || c.Size > maxSnapshot || c.LastLogTerm > c.Term || c.LastLogIndex == 0 {
		return fmt.Errorf("%w: snapshot of version %d, %d bytes, index %d, term %d in term %d",
			errRequest, c.SnapshotVersion, c.Size, c.LastLogIndex, c.LastLogTerm, c.Term)
	}
	return checkConfiguration(c.Configuration)
}

// checkConfiguration decodes a configuration: raft panics over one that it cannot read.
func checkConfiguration(b []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: a configuration that cannot be read: %v", errRequest, cause)
		}
	}()
	raft.DecodeConfiguration(b)
	return nil
}

// answer checks the term in a peer's answer, which raft would store as well.
func (t *transport) answer(id raft.ServerID, term uint64, err error) error {
	r := t.raft.Load()
	if err != nil || r == nil {
		return err
	}
	if err = t.believe(*r, term, id); err != nil {
		t.complain(nil, err)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	err := t.NetworkTransport.RequestVote(id, target, args, resp)
	return t.answer(id, resp.Term, err)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	err := t.NetworkTransport.RequestPreVote(id, target, args, resp)
	return t.answer(id, resp.Term, err)
}

// InstallSnapshot implements raft.Transport.
func (t *transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := t.NetworkTransport.InstallSnapshot(id, target, args, resp, data)
	return t.answer(id, resp.Term, err)
}
