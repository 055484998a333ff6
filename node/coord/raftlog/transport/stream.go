package transport

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

// Stream dials other members for raft.
type Stream struct {
	addr   advertised
	dialer *relay.Dialer
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

var _ raft.StreamLayer = (*Stream)(nil)

// advertised is this member's address, as raft is told of it.
type advertised raft.ServerAddress

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }

// NewStream returns the stream of a member that others dial at addr; find says where a
// member is dialed.
func NewStream(addr raft.ServerAddress, d *relay.Dialer, m *relay.Mux, find func(site string) relay.Peer) *Stream {
	return &Stream{
		addr: advertised(addr), dialer: d, mux: m, find: find,
		closed: make(chan struct{}), greeted: make(chan struct{}),
	}
}

// SetGroup names the lineage that is greeted in. REQUIRES: Begin was not called.
func (s *Stream) SetGroup(id [16]byte) { s.fed = id }

// Begin has it dial: the other members were asked for their epoch. It is called once.
func (s *Stream) Begin() { close(s.greeted) }

// Accept implements net.Listener: raft's transport receives nothing (receive.go).
func (s *Stream) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s *Stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *Stream) Addr() net.Addr { return s.addr }

// ErrNotMember reports a site that left the group while it was about to be dialed.
var ErrNotMember = errors.New("not a member")

// Dial implements raft.StreamLayer. The address is the member's name (byName).
func (s *Stream) Dial(name raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
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
		return nil, fmt.Errorf("dial %s: %w", name, ErrNotMember)
	}
	conn, err := s.dialer.Dial(ctx, to, relay.KindRaft, s.fed)
	if err != nil {
		return nil, err
	}
	if conn, err = s.mux.Track(conn); err != nil {
		return nil, err
	}
	return newOutbound(conn, s.mux.Refuse), nil
}
