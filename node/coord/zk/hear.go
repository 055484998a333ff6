package zk

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// ear is a member's end of the lead's feed: what has come and is not applied.
type ear struct {
	news chan struct{} // signalled when an entry has come, or the feed has ended

	mu   sync.Mutex
	conn net.Conn // nil: there is no feed
	// next comes next by the feed; 0 before its first entry. Invariant: queue has the
	// entries before it, without a gap.
	next  uint64
	queue []heard
	bytes int
}

// heard is an entry that the lead has handed out.
type heard struct {
	n     uint64
	e     entry
	bytes int
}

// begin says that a feed has begun.
func (a *ear) begin(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
}

// end forgets a feed, and what it brought: it is in the tree.
func (a *ear) end() {
	a.mu.Lock()
	a.conn, a.next, a.queue, a.bytes = nil, 0, nil, 0
	a.mu.Unlock()
	coord.Signal(a.news)
}

// hangUp ends a feed that the reader does not trust.
func (a *ear) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.Close()
	}
}

// add notes an entry; false: it does not follow the one before, or too many wait.
func (a *ear) add(h heard) bool {
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

// take returns entry n if it has come, and forgets those before it. coming says
// that the feed brings it.
func (a *ear) take(n uint64) (e *entry, coming bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 && a.queue[0].n <= n {
		h := a.queue[0]
		a.queue[0] = heard{}
		a.queue = a.queue[1:]
		a.bytes -= h.bytes
		if h.n == n {
			return &h.e, true
		}
	}
	return nil, a.next != 0 && n >= a.next
}

// attend keeps a feed from whoever leads, until ctx ends.
func (l *Log) attend(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		changed := l.calls.NextLead()
		to, self := backend{l}.Lead()
		var again <-chan time.Time // never, without another lead
		if !to.None() && !self {
			if l.hear(ctx, to, changed) {
				try = 0
			}
			// A lead that has feeds enough, or knows none, is seldom asked.
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

// hear takes what the leader has appended until the feed ends; some says
// that it brought anything.
func (l *Log) hear(ctx context.Context, to relay.Peer, changed <-chan struct{}) (some bool) {
	dial, cancel := context.WithTimeout(ctx, l.t.RPC)
	conn, err := l.peers.Dial(dial, to, relay.KindFeed, l.line)
	cancel()
	if err != nil {
		return false
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.wg.Go(func() {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		_ = conn.Close()
	})
	l.ear.begin(conn)
	defer l.ear.end()
	in := bufio.NewReaderSize(conn, 64<<10)
	for {
		b, err := relay.ReadFrame(in, nil, maxFeedFrame)
		if err != nil {
			return some
		}
		n, e, err := parseFed(b)
		if err != nil {
			l.mux.Refuse(conn, err)
			return some
		}
		if !l.ear.add(heard{n, e, len(b)}) {
			return some
		}
		some = true
	}
}
