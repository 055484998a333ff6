package zk

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
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

	granted atomic.Int64 // session timeout of the newest connection, in ns; 0 = none yet

	mu   sync.Mutex
	conn net.Conn // the newest
	why  error    // what was wrong with the last attempt, for people
	shut bool
}

// wrong notes why a server is none to talk to.
func (d *dialer) wrong(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = fmt.Errorf("%s: %w", addr, err)
}

// last is what was wrong with the last attempt, or nil.
func (d *dialer) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
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
		d.wrong(addr, err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conn = conn
	return &patient{Conn: conn, d: d, addr: addr}, nil
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
	d       *dialer
	addr    string
	greeted bool
	frames  frames
}

// Read implements net.Conn. The library is not given what it cannot bear.
func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if cause := p.frames.pass(b[:n]); cause != nil {
		p.d.wrong(p.addr, cause)
		return 0, cause
	}
	if s := p.frames.session(); s > 0 {
		p.d.granted.Store(int64(s))
	}
	return n, err
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
	if latest := time.Now().Add(p.d.most); t.After(latest) {
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
	tried   int           // since a server took a connection
	taken   time.Duration // when one did (sinceStart)
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

// Connected implements zk.HostProvider. A server that greets and hangs up, again and
// again, counts as one that was tried: between rounds of those the library pauses.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := sinceStart()
	if h.taken == 0 || now-h.taken > time.Second {
		h.tried = 0
	}
	h.taken = now
}
