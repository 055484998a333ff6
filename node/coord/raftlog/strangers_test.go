package raftlog

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// crowd keeps connections to an address open until ctx ends: n of each greeting, which
// then say nothing. Those that are closed come again. It returns once all are there.
func crowd(ctx context.Context, t *testing.T, wg *sync.WaitGroup, addr string, n int, greetings ...[]byte) {
	t.Helper()
	var there sync.WaitGroup
	var failed atomic.Int64
	for _, b := range greetings {
		for range n {
			there.Add(1)
			wg.Go(func() {
				first := sync.OnceFunc(there.Done)
				defer first()
				for ctx.Err() == nil {
					conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
					if err != nil {
						failed.Add(1)
						return // the listener has gone
					}
					unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = conn.Write(b)
					first()
					_, _ = io.Copy(io.Discard, conn)
					unhook()
					_ = conn.Close()
				}
			})
		}
	}
	there.Wait()
	if k := failed.Load(); k > 0 {
		t.Errorf("%d of %d connections to %s failed", k, n*len(greetings), addr)
	}
}

// TestStrangersStopNoElection: silent connections to the peer ports, half a greeting,
// and greetings in members' names neither stop renewals nor an election. 70 of the
// first kind once did.
func TestStrangersStopNoElection(t *testing.T) {
	c := newCluster(t)
	c.time.handshake = 10 * time.Second // the crowd comes again less often: the machine is shared
	all := []*Log{c.open(t, "a"), c.open(t, "b"), c.open(t, "c")}
	for _, l := range all {
		register(t, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for _, l := range all {
		greeting := func(k relay.Kind, site string) []byte {
			return relay.Preamble{Kind: k, Group: c.fed, Site: site, Means: l.cfg.Site}.Encode()
		}
		crowd(ctx, t, &wg, l.Addr(), 500, nil, []byte("CSHR\x04\x01"))
		for _, as := range all {
			if as != l { // nobody greets a member in its own name
				crowd(ctx, t, &wg, l.Addr(), 4, greeting(relay.KindRaft, as.cfg.Site),
					greeting(relay.KindForward, as.cfg.Site))
			}
		}
		crowd(ctx, t, &wg, l.Addr(), 4, greeting(relay.KindJoin, "c"))
	}
	lead := c.leader(t)
	var next *Log
	for _, l := range all {
		if l != lead {
			next = l
		}
	}
	if _, err := next.Sync(patience(t)); err != nil {
		t.Fatalf("read while strangers connect: %v", err)
	}
	begun := time.Now()
	c.Cut(lead.cfg.Site)
	if _, err := next.Sync(patience(t)); err != nil {
		t.Fatalf("no leader while strangers connect: %v", err)
	}
	t.Logf("a new leader answers after %v", time.Since(begun))
	if next.Err() != nil {
		t.Error(next.Err())
	}
}
