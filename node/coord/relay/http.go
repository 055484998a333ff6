package relay

import (
	"net"
	"sync"
	"time"
)

// maxHTTPWaiting is how many connections of KindHTTP wait for the API: it is opened after the log, and takes them at
// once from then on.
const maxHTTPWaiting = 64

// HTTPListener hands the accepted connections of KindHTTP to whoever serves HTTP, each an *HTTPConn.
type HTTPListener struct {
	addr   net.Addr
	conns  chan *HTTPConn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*HTTPListener)(nil)

// NewHTTPListener takes the connections of KindHTTP of a Mux that does not serve yet.
func NewHTTPListener(m *Mux) *HTTPListener {
	l := &HTTPListener{
		addr: m.ln.Addr(), conns: make(chan *HTTPConn, maxHTTPWaiting), closed: make(chan struct{}),
	}
	m.Handle(KindHTTP, l.take)
	return l
}

// take queues a connection, or closes it: too many wait, or nobody will serve any.
func (l *HTTPListener) take(conn net.Conn, p Preamble) {
	select {
	case <-l.closed:
	default:
		select {
		case l.conns <- &HTTPConn{Conn: conn, site: p.Site}:
			return
		default:
		}
	}
	_ = conn.Close()
}

// Accept implements net.Listener.
func (l *HTTPListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener: it ends Accept. The Mux closes what waits.
func (l *HTTPListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *HTTPListener) Addr() net.Addr { return l.addr }

// HTTPConn is a connection on which another site's broker speaks HTTP.
type HTTPConn struct {
	net.Conn
	site string
}

// PeerSite returns whose broker dialed: its key has proven it where there are keys, else it says so.
func (c *HTTPConn) PeerSite() string { return c.site }

// SetBusy says whether a request is being answered. A connection without one gives way when there are too many.
func (c *HTTPConn) SetBusy(busy bool) {
	if a, ok := c.Conn.(*acceptedConn); ok {
		a.of.asked.Store(busy)
		a.of.spoke.Store(time.Now().UnixNano())
	}
}
