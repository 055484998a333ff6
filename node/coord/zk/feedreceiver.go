package zk

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// feedReceiver is a member's end of the leader's feed: what has come and is not applied.
type feedReceiver struct {
	news chan struct{} // signalled when an entry has come, or the feed has ended

	mu   sync.Mutex
	conn net.Conn // nil: there is no feed
	// next comes next by the feed; 0 before its first entry. Invariant: queue has the
	// entries before it, without a gap.
	next  uint64
	queue []receivedEntry
	bytes int
}

// receivedEntry is an entry that the leader has handed out.
type receivedEntry struct {
	n     uint64
	e     tree.Entry
	bytes int
}

// attach says that a feed has begun.
func (a *feedReceiver) attach(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
}

// detach forgets a feed, and what it brought: it is in the tree.
func (a *feedReceiver) detach() {
	a.mu.Lock()
	a.conn, a.next, a.queue, a.bytes = nil, 0, nil, 0
	a.mu.Unlock()
	coord.Signal(a.news)
}

// disconnect ends a feed that the reader does not trust.
func (a *feedReceiver) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.Close()
	}
}

// add notes an entry; false: it does not follow the one before, or too many wait.
func (a *feedReceiver) add(h receivedEntry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	crowded := len(a.queue) > 0 && (a.bytes+h.bytes > maxFedBytes || len(a.queue) >= maxFed)
	if crowded || a.next != 0 && h.n != a.next {
		return false
	}
	a.queue = append(a.queue, h)
	a.bytes += h.bytes
	a.next = h.n + 1
	coord.Signal(a.news)
	return true
}

// takeEntry returns entry n if it has come, and forgets those before it. coming says
// that the feed brings it.
func (a *feedReceiver) takeEntry(n uint64) (e *tree.Entry, coming bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 && a.queue[0].n <= n {
		h := a.queue[0]
		a.queue[0] = receivedEntry{}
		a.queue = a.queue[1:]
		a.bytes -= h.bytes
		if h.n == n {
			return &h.e, true
		}
	}
	return nil, a.next != 0 && n >= a.next
}

// runReceiver keeps a feed from whoever leads, until ctx ends.
func (l *Log) runReceiver(ctx context.Context) {
	var unanswered unansweredLeader
	for try := 0; ctx.Err() == nil; try++ {
		changed := l.Calls.NextLead()
		to, self := backend{l}.Lead()
		var again <-chan time.Time // never, without another leader
		if !to.None() && !self {
			some, err := l.receiveFeeds(ctx, to, changed)
			if some {
				try = 0
			}
			unanswered.record(l, to, err)
			// A leader that has feeds enough, or knows none, is seldom asked.
			again = time.After(min(l.t.Backoff<<min(try, 20), 20*l.t.poll))
		}
		select {
		case <-again:
		case <-changed:
			try = 0
		case <-ctx.Done():
		}
	}
}

// receiveFeeds takes what the leader has appended until the feed ends; some says
// that it brought anything, err why the leader was not reached.
func (l *Log) receiveFeeds(ctx context.Context, to relay.Peer, changed <-chan struct{}) (some bool, err error) {
	dial, cancel := context.WithTimeout(ctx, l.t.RPC)
	conn, err := l.peers.Dial(dial, to, relay.KindFeed, l.line)
	cancel()
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.WG.Go(func() {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		_ = conn.Close()
	})
	l.receiver.attach(conn)
	defer l.receiver.detach()
	in := bufio.NewReaderSize(conn, 64<<10)
	for {
		b, err := relay.ReadFrame(in, nil, maxFeedFrame)
		if err != nil {
			return some, nil
		}
		n, e, err := parseFed(b)
		if err != nil {
			l.Mux.Refuse(conn, err)
			return some, nil
		}
		if !l.receiver.add(receivedEntry{n, e, len(b)}) {
			return some, nil
		}
		some = true
	}
}
