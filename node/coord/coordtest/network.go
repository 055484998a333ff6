package coordtest

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// ErrFault is what a connection that a fault acts on returns.
var ErrFault = errors.New("injected fault")

// Network is what a backend's members dial each other over, in one process, with the
// faults that Cluster asks for. The zero value is ready for use.
type Network struct {
	// Slow is the kind of connection that a lagging site is cut from; 0: none.
	Slow relay.Kind
	// Never is a kind of connection that nobody gets; 0: none.
	Never relay.Kind

	mu    sync.Mutex
	addr  map[string]string // site → peer address
	cut   map[string]bool
	lag   map[string]bool
	lose  map[string]bool
	conns map[*faulty]struct{}

	roster roster
}

// faulty is a dialed connection that faults act on.
type faulty struct {
	net.Conn
	n          *Network
	from, addr string // dialing site, address dialed: a member is dialed before its Open returns
	beyond     bool   // to no member
	greeted    bool   // the first bytes, which name the kind, were sent
	asked      bool   // more was sent: what is read from now on are answers
	kind       relay.Kind
}

// Join notes a site's peer address, and returns how many are known.
func (n *Network) Join(site, addr string) (all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.addr == nil {
		n.addr = map[string]string{}
	}
	n.addr[site] = addr
	return len(n.addr)
}

// Addr returns a site's peer address, "" if it never joined.
func (n *Network) Addr(site string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr[site]
}

// Size returns how many sites have joined.
func (n *Network) Size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.addr)
}

// Cut ends a site's connections, those to it included, and allows none.
func (n *Network) Cut(site string) { n.fault(&n.cut, site, func(*faulty) bool { return true }) }

// Lag ends what brings a site the log: connections of kind Slow, and those to what is
// no member.
func (n *Network) Lag(site string) { n.fault(&n.lag, site, n.slow) }

// slow reports whether a connection brings the log.
func (n *Network) slow(f *faulty) bool { return f.beyond || n.Slow != 0 && f.kind == n.Slow }

// LoseAnswer ends a site's next forward connection when an answer comes.
func (n *Network) LoseAnswer(site string) {
	n.fault(&n.lose, site, func(*faulty) bool { return false })
}

// Heal takes Cut and Lag away.
func (n *Network) Heal(site string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cut, site)
	delete(n.lag, site)
}

func (n *Network) fault(set *map[string]bool, site string, hit func(*faulty) bool) {
	n.mu.Lock()
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[site] = true
	var hits []*faulty
	for f := range n.conns {
		if f.concerns(site) && hit(f) {
			hits = append(hits, f)
		}
	}
	n.mu.Unlock()
	for _, f := range hits {
		_ = f.Close()
	}
}

// concerns reports whether a site is at one end. One that is being opened for the first
// time is dialed before it has joined: until then it may be at any unknown address.
//
// REQUIRES: f.n.mu held.
func (f *faulty) concerns(site string) bool {
	if f.from == site || f.beyond {
		return f.from == site
	}
	if addr, joined := f.n.addr[site]; joined {
		return f.addr == addr
	}
	for _, addr := range f.n.addr {
		if f.addr == addr {
			return false
		}
	}
	return true
}

// refused reports whether a fault acts on a connection.
//
// REQUIRES: n.mu held.
func (n *Network) refused(f *faulty) bool {
	if n.Never != 0 && f.kind == n.Never {
		return true
	}
	for site := range n.cut {
		if f.concerns(site) {
			return true
		}
	}
	for site := range n.lag {
		if f.concerns(site) && n.slow(f) {
			return true
		}
	}
	return false
}

// Dial connects a site to a member.
func (n *Network) Dial(ctx context.Context, from, addr string) (net.Conn, error) {
	return n.dial(ctx, &faulty{n: n, from: from, addr: addr})
}

// DialBeyond connects a site to what is no member: an ensemble's server, say.
func (n *Network) DialBeyond(ctx context.Context, from, addr string) (net.Conn, error) {
	return n.dial(ctx, &faulty{n: n, from: from, addr: addr, beyond: true, greeted: true})
}

func (n *Network) dial(ctx context.Context, f *faulty) (_ net.Conn, err error) {
	n.mu.Lock()
	refused := n.refused(f)
	n.mu.Unlock()
	if refused {
		return nil, ErrFault
	}
	if f.Conn, err = new(net.Dialer).DialContext(ctx, "tcp", f.addr); err != nil {
		return nil, err
	}
	n.watch(f)
	return f, nil
}

// watch has faults act on a connection from now on.
func (n *Network) watch(f *faulty) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		n.conns = map[*faulty]struct{}{}
	}
	n.conns[f] = struct{}{}
}

// Write implements net.Conn. The first bytes of a connection name its kind.
func (f *faulty) Write(b []byte) (int, error) {
	if f.greeted {
		f.n.mu.Lock()
		f.asked = true
		f.n.mu.Unlock()
	}
	if !f.greeted && len(b) > relay.KindAt {
		f.greeted = true
		f.n.mu.Lock()
		f.kind = relay.Kind(b[relay.KindAt])
		refused := f.n.refused(f)
		f.n.mu.Unlock()
		if refused {
			_ = f.Close()
			return 0, ErrFault
		}
	}
	return f.Conn.Write(b)
}

// Read implements net.Conn.
func (f *faulty) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.n.mu.Lock()
	lost := n > 0 && f.asked && f.kind == relay.KindForward && f.n.lose[f.from]
	if lost {
		delete(f.n.lose, f.from)
	}
	f.n.mu.Unlock()
	if lost {
		_ = f.Close()
		return 0, ErrFault
	}
	return n, err
}

// Close implements net.Conn.
func (f *faulty) Close() error {
	f.n.mu.Lock()
	delete(f.n.conns, f)
	f.n.mu.Unlock()
	return f.Conn.Close()
}
