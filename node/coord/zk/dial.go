package zk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
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
	turn    atomic.Int64 // of the addresses that a name means
	// lookup replaces the system's resolver in tests.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	mu   sync.Mutex
	conn net.Conn // the newest
	why  error    // what was wrong with the last attempt, for people
	shut bool
}

// noteError notes why a server is none to talk to.
func (d *dialer) noteError(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = fmt.Errorf("%s: %w", addr, err)
}

// lastError returns what was wrong with the last attempt, or nil.
func (d *dialer) lastError() error {
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
		open = d.dialNext
	}
	conn, err := open(ctx, addr)
	if err == nil && d.tls != nil {
		conn, err = d.secure(ctx, conn, addr)
	}
	if err != nil {
		d.noteError(addr, err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conn = conn
	return &boundedConn{Conn: conn, d: d, addr: addr}, nil
}

// maxResolved bounds the addresses of one name that are tried in turn.
const maxResolved = 16

// dialNext dials the addresses that a name means, each time beginning with another
// one: the first may belong to a server that takes connections and says nothing.
func (d *dialer) dialNext(ctx context.Context, addr string) (conn net.Conn, err error) {
	addrs, err := d.resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	first := int(d.turn.Add(1)-1) % len(addrs)
	for i := range addrs {
		each, cancel := ctx, context.CancelFunc(func() {})
		if end, ok := ctx.Deadline(); ok {
			each, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(len(addrs)-i))
		}
		conn, err = new(net.Dialer).DialContext(each, "tcp", addrs[(first+i)%len(addrs)])
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// resolve returns the addresses that host:port means.
func (d *dialer) resolve(ctx context.Context, addr string) (addrs []string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, notIP := netip.ParseAddr(host); notIP == nil {
		return []string{addr}, nil
	}
	lookup := d.lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	ips, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for _, ip := range ips[:min(len(ips), maxResolved)] {
		addrs = append(addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("look up %s: it means no address", host)
	}
	return addrs, nil
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

// boundedConn bounds the library's patience: it waits ten times as long for a
// server's greeting as for anything else, so that a stopped server would hold up
// a member that could reach another. What follows goes by the session's timeout
// that the ensemble has given, which may be longer than the one asked for.
type boundedConn struct {
	net.Conn
	d       *dialer
	addr    string
	greeted bool
	frames  frames
}

// Read implements net.Conn. The library is not given what it cannot bear.
func (p *boundedConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if err != nil && !p.frames.greeted && !errors.Is(err, net.ErrClosed) {
		p.d.noteError(p.addr, unanswered(err))
	}
	if cause := p.frames.pass(b[:n]); cause != nil {
		p.d.noteError(p.addr, cause)
		return 0, cause
	}
	if s := p.frames.session(); s > 0 {
		p.d.granted.Store(int64(s))
	}
	return n, err
}

// unanswered says of a server that did not greet what that may mean.
func unanswered(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("it takes connections and says nothing: it hangs, or it is no ZooKeeper server: check the port")
	}
	return fmt.Errorf("it hung up on the greeting: its ensemble has no quorum, or it is no ZooKeeper server: check the port: %w", err)
}

// SetReadDeadline implements net.Conn. The library takes the deadline away behind
// the first bytes of the greeting; the bound holds for the rest of it, too.
func (p *boundedConn) SetReadDeadline(t time.Time) error {
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
// once, forever, and hides them from TLS.
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
