package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A lead whose disk hangs without an error keeps the lead: its heartbeats need
// no disk. raft cannot hand over either, for its main goroutine is the one that
// waits. So the writes are watched from outside: after timing.stall the lead
// falls silent and tells the follower that has most to stand for election;
// after timing.hang the member fails, lead or not.

// errStalled answers raft's heartbeats while this lead is silent.
var errStalled = errors.New("silent: the disk of this lead hangs")

// operations are the writes under way.
type operations struct {
	mu    sync.Mutex
	next  uint64
	begun map[uint64]operation
}

type operation struct {
	what string
	at   time.Time
}

// begin notes a write; the function returned ends it.
func (o *operations) begin(what string, at time.Time) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun == nil {
		o.begun = map[uint64]operation{}
	}
	o.next++
	id := o.next
	o.begun[id] = operation{what, at}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.begun, id)
	}
}

// oldest returns the write that is under way for longest, 0 for none.
func (s *store) oldest(now time.Time) (what string, took time.Duration) {
	s.ops.mu.Lock()
	defer s.ops.mu.Unlock()
	for _, op := range s.ops.begun {
		if d := now.Sub(op.at); d > took {
			what, took = op.what, d
		}
	}
	return what, took
}

// watchDisk looks at the writes under way at every member.
func (l *Log) watchDisk() {
	switch what, took := l.store.oldest(time.Now()); {
	case took > l.t.hang:
		l.fail(fmt.Errorf("%s to %s: %w for %v: check the disk, then start the broker again",
			what, l.cfg.Dir, ErrStalled, took.Round(time.Millisecond)))
	case took > l.t.stall:
		l.yield(what, took)
	default:
		l.trans.mute(false)
	}
}

// yield gives the lead away without raft's main goroutine. A lone voter keeps
// it: there is nobody to take it.
func (l *Log) yield(what string, took time.Duration) {
	if l.raft.State() != raft.Leader {
		return
	}
	heir, addr := l.trans.newest(l.voters())
	if heir == "" || !l.trans.mute(true) {
		return
	}
	l.log.Warn().Str("operation", what).Dur("took", took).Str("to", string(heir)).
		Msg("the disk hangs: handing over the lead")
	l.tellToStand(heir, addr)
}

// tellToStand has a voter stand for leader now, without raft's main goroutine.
func (l *Log) tellToStand(heir raft.ServerID, addr raft.ServerAddress) {
	l.trans.wg.Go(func() {
		req := raft.TimeoutNowRequest{RPCHeader: l.trans.self}
		if err := l.trans.TimeoutNow(heir, addr, &req, new(raft.TimeoutNowResponse)); err != nil {
			l.log.Debug().Err(err).Msg("the heir was not told: the others notice it if this leader is silent")
		}
	})
}

// mute stops or resumes what this member sends as a lead; it says whether that
// changed anything.
func (t *transport) mute(yes bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed = t.muted != yes
	t.muted = yes
	return changed
}

// newest returns the follower among the voters that has most of the log.
func (t *transport) newest(voters []raft.ServerID) (id raft.ServerID, addr raft.ServerAddress) {
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
