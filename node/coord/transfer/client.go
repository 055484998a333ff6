package transfer

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// parallel is how many connections there are to a site's broker at most.
	parallel = 4
	// maxLinks is how many are used at a time, to all; each may hold a piece. Beyond half of them none is a site's
	// second, so that a few that stall keep nobody out.
	maxLinks = 32
	// dialWithin bounds a dial.
	dialWithin = 20 * time.Second
	// keep is for how long a connection is kept for the next request, less than the other side does.
	keep = 60 * time.Second
)

// Client pulls blobs from other sites' brokers. It is safe for concurrent use.
type Client struct {
	dial  func(ctx context.Context, site, addr string) (net.Conn, error)
	piece int64 // PieceBytes, but for tests

	links   chan struct{} // a token for each link in use
	waiting atomic.Int32  // pulls that wait for one of them, and have one of their peer's

	mu     sync.Mutex
	closed bool
	peers  map[address]*peer
}

type address struct{ site, addr string }

// peer is the broker of another site, while something is pulled from it or a link to it is kept.
type peer struct {
	address
	of      *Client
	links   chan struct{} // a token for each link in use
	waiting atomic.Int32  // pulls that wait for one

	pulls int // guarded by of.mu, as what follows
	kept  []*link
}

// NewClient returns a client; dial connects to a site's broker at its peer address by relay.KindFiles, and fails if
// anybody else answers there.
func NewClient(dial func(ctx context.Context, site, addr string) (net.Conn, error)) *Client {
	return &Client{
		dial: dial, piece: PieceBytes, links: make(chan struct{}, maxLinks), peers: map[address]*peer{},
	}
}

// join returns the peer at an address, for one pull.
func (c *Client) join(a address) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[a]
	if p == nil {
		p = &peer{address: a, of: c, links: make(chan struct{}, parallel)}
		c.peers[a] = p
	}
	p.pulls++
	return p
}

// leave ends what join began.
func (c *Client) leave(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.pulls--
	c.sweep()
}

// sweep closes what was kept for long enough, and forgets peers without links.
//
// REQUIRES: c.mu held.
func (c *Client) sweep() {
	for a, p := range c.peers {
		for len(p.kept) > 0 && (c.closed || time.Since(p.kept[0].since) > keep) {
			_ = p.kept[0].Close()
			p.kept = p.kept[1:]
		}
		if p.pulls == 0 && len(p.kept) == 0 {
			delete(c.peers, a)
		}
	}
}

// Close ends what is kept; pulls under way end with their contexts.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.sweep()
}

// acquire waits for the right to use a link.
func (p *peer) acquire(ctx context.Context) error {
	if err := enter(ctx, p.links, &p.waiting); err != nil {
		return err
	}
	if err := enter(ctx, p.of.links, &p.of.waiting); err != nil {
		<-p.links
		return err
	}
	return nil
}

func enter(ctx context.Context, tokens chan<- struct{}, waiting *atomic.Int32) error {
	waiting.Add(1)
	defer waiting.Add(-1)
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryAcquire reports whether one more link may be used, of which nobody is in want.
func (p *peer) tryAcquire() bool {
	if p.crowded() || len(p.of.links) >= maxLinks/2 {
		return false
	}
	select {
	case p.links <- struct{}{}:
	default:
		return false
	}
	select {
	case p.of.links <- struct{}{}:
		return true
	default:
		<-p.links
		return false
	}
}

func (p *peer) release() {
	<-p.of.links
	<-p.links
}

// crowded reports whether a pull waits for a link.
func (p *peer) crowded() bool { return p.waiting.Load() > 0 || p.of.waiting.Load() > 0 }

// link returns a link that was kept, or a new one.
//
// REQUIRES: the right to use one was acquired.
func (p *peer) link(ctx context.Context) (*link, error) {
	if l := p.takeKept(); l != nil {
		return l, nil
	}
	dialing, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := p.of.dial(dialing, p.site, p.addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return newLink(conn), nil
}

func (p *peer) takeKept() *link {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.sweep()
	if len(p.kept) == 0 {
		return nil
	}
	last := len(p.kept) - 1
	l := p.kept[last]
	p.kept = p.kept[:last]
	return l
}

// keep keeps a link on which nothing is under way.
func (p *peer) keep(l *link) {
	l.kept, l.since = true, time.Now()
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.kept = append(p.kept, l)
	p.of.sweep()
}
