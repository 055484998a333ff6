package raftlog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// stream dials other members for raft.
type stream struct {
	addr   advertised
	dialer dialer
	mux    *relay.Mux // tracks connections, so that Close ends them
	fed    [16]byte
	closed chan struct{}
	// greeted is closed once the other members were asked for their epoch:
	// before, this member sends nothing, so it cannot be elected.
	greeted chan struct{}
	once    sync.Once
	// find says where a member is dialed. It is called behind greeted only.
	find func(site string) relay.Peer
}

var _ raft.StreamLayer = (*stream)(nil)

// advertised is this member's address, as raft is told of it.
type advertised raft.ServerAddress

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }

func newStream(addr raft.ServerAddress, d dialer, m *relay.Mux) *stream {
	return &stream{
		addr: advertised(addr), dialer: d, mux: m,
		closed: make(chan struct{}), greeted: make(chan struct{}),
	}
}

// Accept implements net.Listener: raft's transport receives nothing (receive.go).
func (s *stream) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *stream) Addr() net.Addr { return s.addr }

// errNotMember reports a site that left the group while it was about to be dialed.
var errNotMember = errors.New("not a member")

// Dial implements raft.StreamLayer. The address is the member's name (byName).
func (s *stream) Dial(name raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case <-s.greeted:
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	to := s.find(string(name))
	if to.None() {
		return nil, fmt.Errorf("dial %s: %w", name, errNotMember)
	}
	conn, err := s.dialer.Dial(ctx, to, relay.KindRaft, s.fed)
	if err != nil {
		return nil, err
	}
	if conn, err = s.mux.Track(conn); err != nil {
		return nil, err
	}
	return &outbound{Conn: conn, complain: s.mux.Refuse}, nil
}
