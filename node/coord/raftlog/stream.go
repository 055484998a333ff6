package raftlog

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// stream is raft's view of the peer listener.
type stream struct {
	addr     advertised
	dialer   dialer
	mux      *relay.Mux // tracks connections, so that Close ends them
	fed      [16]byte
	accepted chan net.Conn
	closed   chan struct{}
	// greeted is closed once the other members were asked for their epoch:
	// before, this member sends nothing, so it cannot be elected.
	greeted chan struct{}
	once    sync.Once
}

var _ raft.StreamLayer = (*stream)(nil)

// advertised is the address that others dial.
type advertised string

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }

func newStream(addr string, d dialer, m *relay.Mux) *stream {
	return &stream{
		addr: advertised(addr), dialer: d, mux: m,
		accepted: make(chan net.Conn), closed: make(chan struct{}), greeted: make(chan struct{}),
	}
}

// hand gives an accepted connection to raft.
func (s *stream) hand(conn net.Conn, _ relay.Preamble) {
	select {
	case s.accepted <- conn:
	case <-s.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *stream) Addr() net.Addr { return s.addr }

// Dial implements raft.StreamLayer.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case <-s.greeted:
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := s.dialer.Dial(ctx, string(address), relay.KindRaft, s.fed)
	if err != nil {
		return nil, err
	}
	return s.mux.Track(conn)
}
