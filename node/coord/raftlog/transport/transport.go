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

// Transport sends by raft's network transport and by pipes (pipe.go), and receives by itself (receive.go). raft's own
// pipelining, which MaxRPCsInFlight 1 turns off, wedges a follower.
// It also keeps each follower's progress (raft does not tell) and tells followers of
// a commit (notice.go).
type Transport struct {
	*raft.NetworkTransport
	stream raft.StreamLayer
	log    hclog.Logger
	self   raft.RPCHeader

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
	return newTransport(s, s.mux.Refuse, site, within, silence, quiet, logger)
}

func newTransport(s raft.StreamLayer, complain func(net.Conn, error), site string, within, silence time.Duration,
	quiet Quiet, logger hclog.Logger,
) *Transport {
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, ServerAddressProvider: byName{}, MaxPool: 4, MaxRPCsInFlight: 1, Timeout: within, Logger: logger,
	})
	return &Transport{
		NetworkTransport: nt, stream: s, log: logger, screened: make(chan raft.RPC), shut: make(chan struct{}),
		complain: complain, within: within, leads: termLeader{silence: silence, quiet: max(silence, quiet.Silence)},
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
	at      time.Time      // last answer
	took    latency.Recent // from requests with entries to their answers
	alone   latency.Recent // took without what others that came before were waited for; see Alone
	way     way
	commits commitNews
	// Of pipes.go: spare is for the next pipe. A former term's pipe may still be ending.
	pipe    *pipe
	spare   net.Conn
	dialing bool
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
	args.Entries = boundEntries(args.Entries)
	round, err := t.begin(id, args)
	if err != nil {
		return round, err
	}
	begin := time.Now()
	err = t.NetworkTransport.AppendEntries(id, target, t.toldEntries(id, args), resp)
	if err = t.answer(id, resp.Term, err); err != nil {
		t.failed(id, args.Term)
		return round, err
	}
	t.measure(id, args, resp, begin, time.Time{})
	t.answered(id, target, args, resp, round)
	return round, nil
}

// begin notes that a request is about to be sent, and returns the round in which it is.
func (t *Transport) begin(id raft.ServerID, args *raft.AppendEntriesRequest) (round uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.muted {
		return t.round, ErrMuted
	}
	t.beginTerm(args.Term)
	if args.Term == t.term {
		p := t.progressOf(id)
		p.commits.sending(args)
		if p.pipe != nil { // raft may have made the request before the newest commit
			t.tellCommit(id, p)
		}
	}
	return t.round, nil
}

// failed notes that a request of a term was not answered.
func (t *Transport) failed(id raft.ServerID, term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term == t.term {
		p := t.progressOf(id)
		p.commits.lost(p.match)
	}
}

// measure notes how long a follower took to answer a request with entries, or a heartbeat. before is when the answer
// came to the one that was sent before by the same pipe; zero = there is none.
func (t *Transport) measure(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
	begin, before time.Time,
) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch p := t.progressOf(id); {
	case isHeartbeat(args):
		p.way.add(now, now.Sub(begin))
	case len(args.Entries) > 0 && resp.Success:
		p.took.Add(now, now.Sub(begin))
		// The follower took it up when it had come, and the one before was answered.
		if trip, ok := p.way.trip(); ok && before.Add(-trip).After(begin) {
			begin = before.Add(-trip)
		}
		p.alone.Add(now, now.Sub(begin))
		p.way.doubt(now, now.Sub(begin), wayQuiets*t.quiet.For)
	}
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

// Alone is Syncs without what a request waited for at the follower until those before were answered: the round trip,
// and the time of its own entries.
func (t *Transport) Alone(id raft.ServerID, now time.Time) (d time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[id]; p != nil {
		return p.alone.Median(now)
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
		if args.Term == t.term {
			p.commits.lost(p.match)
		}
		return
	}
	t.beginTerm(args.Term)
	p.at, p.addr = time.Now(), target
	if args.Term == t.term {
		p.match = max(p.match, lastOf(args))
		p.commits.heard(commitIn(args))
		p.acked = max(p.acked, round)
	}
	t.tellCommit(id, p)
}

// beginTerm starts the bookkeeping of a new term.
//
// REQUIRES: t.mu held.
func (t *Transport) beginTerm(term uint64) {
	if term > t.term {
		t.term, t.committed = term, 0
		for _, p := range t.peers {
			p.match, p.acked = 0, 0
			p.commits.beginTerm()
		}
	}
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
	t.closePipes()
	err := t.NetworkTransport.Close()
	t.CloseStreams()
	return err
}
