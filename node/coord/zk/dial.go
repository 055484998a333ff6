package zk

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// dial opens a connection to a server of the ensemble.
type dial func(ctx context.Context, addr string) (net.Conn, error)

// dialer opens the connections of one client, with TLS if there is a
// configuration.
type dialer struct {
	dial dial // nil: TCP
	tls  *tls.Config
	most time.Duration // a server that is silent for longer is given up

	mu   sync.Mutex
	conn net.Conn // the newest
	shut bool
}

// open is what the library calls.
func (d *dialer) open(_, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	open := d.dial
	if open == nil {
		open = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	conn, err := open(ctx, addr)
	if err == nil && d.tls != nil {
		conn, err = d.secure(ctx, conn, addr)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conn = conn
	return &patient{Conn: conn, most: d.most}, nil
}

func (d *dialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	cfg := d.tls.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS with ZooKeeper server %s: %w", addr, err)
	}
	return secure, nil
}

// close ends the newest connection and allows no other.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

// patient bounds the library's patience: it waits ten times as long for a
// server's greeting as for anything else, so that a stopped server would hold up
// a member that could reach another. What follows goes by the session's timeout
// that the ensemble has given, which may be longer than the one asked for.
type patient struct {
	net.Conn
	most    time.Duration
	greeted bool
}

// SetReadDeadline implements net.Conn. The library takes the deadline away behind
// the first bytes of the greeting; the bound holds for the rest of it, too.
func (p *patient) SetReadDeadline(t time.Time) error {
	if p.greeted {
		return p.Conn.SetReadDeadline(t)
	}
	if t.IsZero() {
		p.greeted = true
		return nil
	}
	if latest := time.Now().Add(p.most); t.After(latest) {
		t = latest
	}
	return p.Conn.SetReadDeadline(t)
}

// hosts hands out the servers in turn. The library's own provider resolves names
// once, for ever, and hides them from TLS.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last connection
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next implements zk.HostProvider.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	h.next++
	h.tried++
	retryStart = h.tried > len(h.servers)
	if retryStart {
		h.tried = 1
	}
	return server, retryStart
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
