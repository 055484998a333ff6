package askkeys

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/seal"
)

// keep is for how long a connection is kept for the next question, less than the other side does.
const keep = 60 * time.Second

// Client asks other sites' brokers. It is safe for concurrent use.
type Client struct {
	// Dial connects to a site's broker at its peer address, and fails if anybody else answers there.
	Dial func(ctx context.Context, site, addr string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	rest   map[peer]resting // connections that no question is under way on
}

type peer struct{ site, addr string }

type resting struct {
	net.Conn
	since time.Time
}

// Ask asks a site at an address; ctx bounds it. A kept connection that has ended meanwhile is replaced once.
func (c *Client) Ask(ctx context.Context, site, addr string, q Question) ([]seal.Answer, error) {
	to := peer{site, addr}
	if conn := c.take(to); conn != nil {
		if answers, err := c.askOn(ctx, conn, to, q); err == nil || ctx.Err() != nil {
			return answers, err
		}
	}
	conn, err := c.Dial(ctx, site, addr)
	if err != nil {
		return nil, err
	}
	return c.askOn(ctx, conn, to, q)
}

// askOn asks on a connection, which is kept if the answer is one.
func (c *Client) askOn(ctx context.Context, conn net.Conn, to peer, q Question) ([]seal.Answer, error) {
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, err := conn.Write(relay.EndFrame(q.append(relay.Frame(nil))))
	var b []byte
	if err == nil {
		b, err = relay.ReadFrame(conn, nil, maxAnswer)
	}
	var answers []seal.Answer
	if err == nil {
		answers, err = parseAnswers(b, len(q.Attempts))
	}
	if !unhook() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil || ctx.Err() != nil {
		_ = conn.Close()
		if err != nil {
			return nil, fmt.Errorf("ask its broker at %s: %w", to.addr, err)
		}
		return answers, nil
	}
	c.put(to, conn)
	return answers, nil
}

// take returns a kept connection, nil if there is none, and closes those that were kept long enough.
func (c *Client) take(to peer) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, r := range c.rest {
		if time.Since(r.since) > keep {
			_ = r.Close()
			delete(c.rest, p)
		}
	}
	r := c.rest[to]
	delete(c.rest, to)
	return r.Conn
}

func (c *Client) put(to peer, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.rest[to].Conn != nil {
		_ = conn.Close()
		return
	}
	if c.rest == nil {
		c.rest = map[peer]resting{}
	}
	c.rest[to] = resting{conn, time.Now()}
}

// Close ends what is kept; questions under way end with their contexts.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, r := range c.rest {
		_ = r.Close()
	}
	clear(c.rest)
}
