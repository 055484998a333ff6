package transport

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

// ErrRequest reports a raft request that no member sends.
var ErrRequest = errors.New("refused raft request")

// View is what the screen needs of raft.
type View interface {
	CurrentTerm() uint64
	LastIndex() uint64
	State() raft.RaftState
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	GetConfiguration() raft.ConfigurationFuture
}

// Consumer implements raft.Transport.
func (t *Transport) Consumer() <-chan raft.RPC { return t.screened }

// SetHeartbeatHandler implements raft.Transport.
func (t *Transport) SetHeartbeatHandler(handle func(raft.RPC)) {
	if handle == nil {
		t.heartbeat.Store(nil)
		return
	}
	t.heartbeat.Store(&handle)
}

// HeartbeatHandler returns what SetHeartbeatHandler set, or nil.
func (t *Transport) HeartbeatHandler() func(raft.RPC) {
	if handle := t.heartbeat.Load(); handle != nil {
		return *handle
	}
	return nil
}

// screen answers a request that must not reach raft with an error.
func (t *Transport) screen(rpc raft.RPC) bool {
	r := t.raft.Load()
	if r == nil {
		rpc.Respond(&raft.AppendEntriesResponse{}, ErrRequest)
		return false
	}
	err := t.checkRequest(*r, rpc.Command)
	if err != nil {
		t.complain(nil, err)
		rpc.Respond(&raft.AppendEntriesResponse{}, err)
	}
	return err == nil
}

// checkRequest says why a request must not reach raft, or nil.
func (t *Transport) checkRequest(r View, command any) error {
	h, ok := command.(raft.WithRPCHeader)
	if !ok {
		return fmt.Errorf("%w: %T", ErrRequest, command)
	}
	from := h.GetRPCHeader()
	if len(from.ID) == 0 || len(from.Addr) == 0 {
		return fmt.Errorf("%w: %T of nobody", ErrRequest, command)
	}
	id := raft.ServerID(from.ID)
	switch c := command.(type) {
	case *raft.RequestVoteRequest:
		return t.checkTermUnlessRefused(isVoter(r, id), r, c.Term, id)
	case *raft.RequestPreVoteRequest:
		return t.checkTermUnlessRefused(isVoter(r, id), r, c.Term, id)
	case *raft.AppendEntriesRequest:
		return t.checkLeaderRequest(r, id, c.Term, checkEntries(c))
	case *raft.InstallSnapshotRequest:
		return t.checkLeaderRequest(r, id, c.Term, checkSnapshot(c))
	case *raft.TimeoutNowRequest:
		if _, leader := r.LeaderWithID(); leader != id {
			return fmt.Errorf("%w: %s hands over a leadership that it does not have", ErrRequest, id)
		}
		return nil
	}
	return fmt.Errorf("%w: %T", ErrRequest, command)
}

// checkTermUnlessRefused believes the term of a request only if nothing else is wrong with it: a
// request that is refused anyway must not take the jump that a member may need.
func (t *Transport) checkTermUnlessRefused(refused error, r View, term uint64, id raft.ServerID) error {
	if refused != nil {
		return refused
	}
	return t.checkPeerTerm(r, term, id)
}

// checkLeaderRequest is checkTermUnlessRefused for what only a leader sends; refused, if
// not nil, is what is wrong with it besides its sender.
func (t *Transport) checkLeaderRequest(r View, id raft.ServerID, term uint64, refused error) error {
	now := time.Now()
	err := t.checkTermUnlessRefused(errors.Join(t.leads.check(r, id, term, now, t.selfVotes()), refused), r, term, id)
	if err == nil {
		t.leads.record(r, id, term, now)
	}
	return err
}

// checkPeerTerm checks a peer's term, of a request or of an answer.
func (t *Transport) checkPeerTerm(r View, term uint64, id raft.ServerID) error {
	err := t.terms.check(r.CurrentTerm(), term, r.LastIndex() == 0, time.Now())
	if err != nil {
		return fmt.Errorf("raft message of %.80q: %w", id, err)
	}
	return nil
}

// isVoter refuses candidates that this member does not know as voters. raft refuses
// them, too, but some of them only after it has taken their term.
func isVoter(r View, id raft.ServerID) error {
	servers := r.GetConfiguration().Configuration().Servers
	if len(servers) == 0 || slices.ContainsFunc(servers,
		func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter }) {
		return nil
	}
	return fmt.Errorf("%w: %.80q asks for a vote and is no voter here", ErrRequest, id)
}

// termLeader is who first said that it leads the newest term that anybody leads. raft's
// own word for it does not do: a late heartbeat of the former leader may name that one
// after raft has gone to the next term. Who was first may have lied, and another one
// been elected: so its word counts as long as it goes on saying so.
type termLeader struct {
	// silence is after how long without a word of the first another one may lead, to a voter, and quiet to others, who
	// hear of it less often (quiet.go). Invariant: quiet ≥ silence.
	silence, quiet time.Duration

	mu    sync.Mutex
	term  uint64
	id    raft.ServerID
	heard time.Time
}

// check refuses a second leader of one term, whom no majority can have elected. votes reports whether this member does.
func (l *termLeader) check(r View, id raft.ServerID, term uint64, now time.Time, votes bool) error {
	if r.CurrentTerm() == term && r.State() == raft.Leader { // in this order: the term only grows
		return fmt.Errorf("%w: %.80q says that it leads term %d, and this member does", ErrRequest, id, term)
	}
	silence := l.silence
	if !votes {
		silence = l.quiet
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if term == l.term && id != l.id && term > 0 && (noLeaderSilence || now.Sub(l.heard) < silence) {
		return fmt.Errorf("%w: %.80q says that it leads term %d, and %s did first", ErrRequest, id, term, l.id)
	}
	return nil
}

// record records who said so, in a request that nothing else is wrong with.
func (l *termLeader) record(r View, id raft.ServerID, term uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term == l.term || term > l.term && term <= r.CurrentTerm()+1 { // a term from nowhere makes no leader
		l.term, l.id, l.heard = term, id, now
	}
}

// checkEntries refuses entries that end the process of whoever stores or reads them.
func checkEntries(c *raft.AppendEntriesRequest) error {
	term := c.PrevLogTerm
	for i, e := range c.Entries {
		switch {
		case e == nil:
			return fmt.Errorf("%w: entry %d of %d is none", ErrRequest, i, len(c.Entries))
		case e.Index != c.PrevLogEntry+1+uint64(i) || e.Index == 0 || e.Term < term || e.Term == 0 || e.Term > c.Term:
			return fmt.Errorf("%w: entry %d of term %d behind entry %d of term %d", ErrRequest, e.Index, e.Term, c.PrevLogEntry+uint64(i), term)
		case e.Type == raft.LogConfiguration:
			if err := checkConfiguration(e.Data); err != nil {
				return err
			}
		case e.Type != raft.LogCommand && e.Type != raft.LogNoop && e.Type != raft.LogBarrier:
			return fmt.Errorf("%w: entry %d of type %d", ErrRequest, e.Index, e.Type)
		}
		term = e.Term
	}
	return nil
}

func checkSnapshot(c *raft.InstallSnapshotRequest) error {
	if c.SnapshotVersion != raft.SnapshotVersionMax || c.Size < 0 || c.Size > maxSnapshot || c.LastLogTerm > c.Term ||
		c.LastLogIndex == 0 {
		return fmt.Errorf("%w: snapshot of version %d, %d bytes, index %d, term %d in term %d",
			ErrRequest, c.SnapshotVersion, c.Size, c.LastLogIndex, c.LastLogTerm, c.Term)
	}
	return checkConfiguration(c.Configuration)
}

// checkConfiguration decodes a configuration: raft panics over one that it cannot read.
func checkConfiguration(b []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: a configuration that cannot be read: %v", ErrRequest, cause)
		}
	}()
	raft.DecodeConfiguration(b)
	return nil
}

// answer checks the term in a peer's answer, which raft would store as well.
func (t *Transport) answer(id raft.ServerID, term uint64, err error) error {
	r := t.raft.Load()
	if err != nil || r == nil {
		return err
	}
	if err = t.checkPeerTerm(*r, term, id); err != nil {
		t.complain(nil, err)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *Transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse,
) error {
	err := t.NetworkTransport.RequestVote(id, target, args, resp)
	return t.answer(id, resp.Term, err)
}

// RequestPreVote implements raft.WithPreVote.
func (t *Transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse,
) error {
	err := t.NetworkTransport.RequestPreVote(id, target, args, resp)
	return t.answer(id, resp.Term, err)
}

// InstallSnapshot implements raft.Transport.
func (t *Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	args, data = t.toldState(id, args, data)
	err := t.NetworkTransport.InstallSnapshot(id, target, args, resp, data)
	return t.answer(id, resp.Term, err)
}
