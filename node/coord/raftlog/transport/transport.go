package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/latency"
)

// Transport sends by raft's network transport and receives by itself (receive.go).
// It also keeps each follower's progress (raft does not tell) and nudges followers
// after a commit.
//
// A follower learns that an entry is committed from the next append request.
// When none follows, raft sends one only after CommitTimeout; lowering that to
// a few milliseconds costs hundreds of requests a second at rest. Instead the
// leader sends one empty append request as soon as the last entry in flight is
// committed. It says only what is true forever (the leader of this term had this
// entry, of this term, committed), so it is safe however late it arrives.
type Transport struct {
	*raft.NetworkTransport
	self raft.RPCHeader

	// See screen.go: requests that raft may see, and what it takes to judge them.
	screened chan raft.RPC
	shut     chan struct{} // closed with the transport
	raft     atomic.Pointer[View]
	terms    termGuard
	leads    termLeader // of the newest term; see screen.go
	complain func(net.Conn, error)

	// See receive.go.
	within    time.Duration // a request, once begun, arrives
	held      shareBytes
	heartbeat atomic.Pointer[func(raft.RPC)]

	mu        sync.Mutex
	peers     map[raft.ServerID]*progress
	committed uint64 // newest committed index of an entry of term
	term      uint64
	round     uint64 // see confirm.go; only grows
	muted     bool   // see disk.go
	closed    bool
	acked     coord.Broadcast // some follower answered
	wg        sync.WaitGroup

	// See quiet.go: voters are those of servers, the configuration that was looked through last.
	quiet   Quiet
	servers []raft.Server
	voters  map[raft.ServerID]bool
}

// New returns the transport of a member. A request, once begun, arrives within
// a time; silence is after how long without a word of a term's leader another one may
// say that it leads it, to a voter.
func New(s *Stream, site string, within, silence time.Duration, quiet Quiet, logger hclog.Logger) *Transport {
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, ServerAddressProvider: byName{}, MaxPool: 4, MaxRPCsInFlight: 1, Timeout: within, Logger: logger,
	})
	return &Transport{
		NetworkTransport: nt, screened: make(chan raft.RPC), shut: make(chan struct{}),
		complain: s.mux.Refuse, within: within, leads: termLeader{silence: silence, quiet: max(silence, quiet.Silence)},
		self: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(nt.LocalAddr()),
		},
		peers: map[raft.ServerID]*progress{}, quiet: quiet,
	}
}

// Attach has requests judged by what raft knows; before, none is let through.
func (t *Transport) Attach(r View) { t.raft.Store(&r) }

// Wait waits for what is under way, once the transport is closed.
func (t *Transport) Wait() { t.wg.Wait() }

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// progress of one follower as seen by this member while it leads.
type progress struct {
	addr    raft.ServerAddress
	match   uint64         // newest entry known to be stored there
	told    uint64         // newest commit index it has heard
	at      time.Time      // last answer
	took    latency.Recent // from requests with entries to their answers
	nudging bool
	// Of confirm.go: acked is the newest round in which a request was sent that
	// the follower answered in this term, wanted the newest that waits for it.
	acked, wanted uint64
	said          uint64 // the term of its last answer
	probing       bool
}

// REQUIRES: t.mu held.
func (t *Transport) progressOf(id raft.ServerID) *progress {
	p := t.peers[id]
	if p == nil {
		p = &progress{}
		t.peers[id] = p
	}
	return p
}

// AppendEntries implements raft.Transport.
func (t *Transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) error {
	if t.spared(id, args, resp) {
		return nil
	}
	_, err := t.send(id, target, args, resp)
	return err
}

// send is AppendEntries; it returns the round in which it began.
func (t *Transport) send(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) (uint64, error) {
	t.mu.Lock()
	round, muted := t.round, t.muted
	t.mu.Unlock()
	if muted {
		return round, ErrMuted
	}
	args.Entries = boundEntries(args.Entries)
	begin := time.Now()
	err := t.NetworkTransport.AppendEntries(id, target, t.toldEntries(id, args), resp)
	if err = t.answer(id, resp.Term, err); err != nil {
		return round, err
	}
	t.measure(id, args, resp, begin)
	t.answered(id, target, args, resp, round)
	return round, nil
}

// measure notes how long a follower took to answer a request with entries.
func (t *Transport) measure(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
	begin time.Time,
) {
	if len(args.Entries) == 0 || !resp.Success {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progressOf(id).took.Add(now, now.Sub(begin))
}

// Syncs returns the median time that a follower takes to store entries and answer; ok
// is false if there were too few lately.
func (t *Transport) Syncs(id raft.ServerID, now time.Time) (d time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[id]; p != nil {
		return p.took.Median(now)
	}
	return 0, false
}

func (t *Transport) answered(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse, round uint64,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.acked.Fire()
	p := t.progressOf(id)
	p.said = resp.Term
	if !resp.Success {
		return
	}
	t.beginTerm(args.Term)
	p.at, p.addr = time.Now(), target
	stored := args.PrevLogEntry
	if n := len(args.Entries); n > 0 {
		stored = args.Entries[n-1].Index
	}
	if args.Term == t.term {
		p.match = max(p.match, stored)
		p.told = max(p.told, min(args.LeaderCommitIndex, p.match))
		p.acked = max(p.acked, round)
	}
	t.nudge(id, p)
}

// beginTerm starts the bookkeeping of a new term.
//
// REQUIRES: t.mu held.
func (t *Transport) beginTerm(term uint64) {
	if term > t.term {
		t.term, t.committed = term, 0
		for _, p := range t.peers {
			p.match, p.told, p.acked = 0, 0, 0
		}
	}
}

// Committed is told each entry that this member applies as the leader of its term;
// more follows: the append request of the next entry tells the followers.
func (t *Transport) Committed(l *raft.Log, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginTerm(l.Term)
	if l.Term != t.term {
		return
	}
	t.committed = max(t.committed, l.Index)
	if more {
		return
	}
	for id, p := range t.peers {
		t.nudge(id, p)
	}
}

// nudge sends the commit index to a follower that has the entry and has not
// heard. One nudge a follower is under way at most.
//
// REQUIRES: t.mu held.
func (t *Transport) nudge(id raft.ServerID, p *progress) {
	if p.nudging || t.closed || t.muted || t.committed == 0 || p.told >= t.committed || p.match < t.committed {
		return
	}
	p.nudging = true
	req := &raft.AppendEntriesRequest{
		RPCHeader: t.self, Term: t.term,
		PrevLogEntry: t.committed, PrevLogTerm: t.term, LeaderCommitIndex: t.committed,
	}
	target := p.addr
	t.wg.Go(func() {
		var resp raft.AppendEntriesResponse
		err := t.NetworkTransport.AppendEntries(id, target, req, &resp)
		t.mu.Lock()
		defer t.mu.Unlock()
		p.nudging = false
		if err == nil && resp.Success && req.Term == t.term {
			p.told = max(p.told, req.LeaderCommitIndex)
			t.nudge(id, p)
		}
	})
}

// Follower returns what is known of a follower's progress in this term.
func (t *Transport) Follower(id raft.ServerID) (match uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[id]; p != nil {
		return p.match, p.at
	}
	return 0, time.Time{}
}

// TimeoutNow implements raft.Transport. Raft's transfer of the leadership does not
// Wait for the goroutine that calls it, so Close's caller does, with wg.
func (t *Transport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse,
) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return raft.ErrTransportShutdown
	}
	t.wg.Add(1)
	t.mu.Unlock()
	defer t.wg.Done()
	return t.NetworkTransport.TimeoutNow(id, target, args, resp)
}

// Close implements raft.WithClose.
func (t *Transport) Close() error {
	t.mu.Lock()
	if !t.closed {
		close(t.shut)
	}
	t.closed = true
	t.mu.Unlock()
	err := t.NetworkTransport.Close()
	t.CloseStreams()
	return err
}
