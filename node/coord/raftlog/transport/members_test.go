package transport

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// members are transports that dial each other over wires.
type members struct {
	delay  func() time.Duration                 // of a wire; nil: none
	apart  func(a, b string) time.Duration      // in place of delay, between two members; nil: delay counts
	refuse func(from, to string) bool           // a wire that cannot be had; nil: all can
	laid   func(from, to string, laid *wireEnd) // is told each new wire, by the end that is served; nil: nobody
	quiet  Quiet                                // of all

	mu    sync.Mutex
	trans map[string]*Transport
	wires map[*wire][2]string
	count int // of wires laid
	wg    sync.WaitGroup
}

// open adds a member, closed with the test.
func (m *members) open(t testing.TB, site string, within time.Duration) *Transport {
	tr := newTransport(&memberStream{m: m, site: site, closed: make(chan struct{})},
		func(net.Conn, error) {}, site, within, time.Second, m.quiet, hclog.NewNullLogger())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trans == nil {
		m.trans, m.wires = map[string]*Transport{}, map[*wire][2]string{}
	}
	m.trans[site] = tr
	t.Cleanup(func() { m.close(tr) })
	return tr
}

// close ends a member as its Log does, and its wires.
func (m *members) close(tr *Transport) {
	_ = tr.Close()
	m.cut(string(tr.self.ID))
	tr.Wait()
	m.wg.Wait()
}

// cut ends the wires of a member.
func (m *members) cut(site string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, ends := range m.wires {
		if ends[0] == site || ends[1] == site {
			w.cut()
			delete(m.wires, w)
		}
	}
}

func (m *members) dial(from, to string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tr := m.trans[to]
	if tr == nil || m.refuse != nil && m.refuse(from, to) {
		return nil, errWire
	}
	select {
	case <-tr.shut:
		return nil, errWire
	default:
	}
	delay := m.delay
	if m.apart != nil {
		delay = func() time.Duration { return m.apart(from, to) }
	}
	w := newWire(delay)
	m.count++
	m.wires[w] = [2]string{from, to}
	if m.laid != nil {
		m.laid(from, to, w.ends[1])
	}
	m.wg.Go(func() { tr.Serve(w.ends[1], relay.Preamble{Site: from}) })
	return w.ends[0], nil
}

// laidWires returns how many there were.
func (m *members) laidWires() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// memberStream dials for a member of members.
type memberStream struct {
	m      *members
	site   string
	closed chan struct{}
	once   sync.Once
}

// Dial implements raft.StreamLayer.
func (s *memberStream) Dial(to raft.ServerAddress, _ time.Duration) (net.Conn, error) {
	return s.m.dial(s.site, string(to))
}

// Accept implements net.Listener.
func (s *memberStream) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s *memberStream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *memberStream) Addr() net.Addr { return advertised(ServerAddress(s.site, "h:1")) }

// leaderTerm is the term of the one leader there is, that of the views of terms_test.go.
const leaderTerm = 7
