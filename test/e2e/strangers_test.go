package e2e

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestStrangersAtThePeerPorts: strangers hold silent connections to every broker. A member sends
// the leader frames of calls without commands, and each tells another of the greatest term there
// is. The brokers go on, a killed leader is
// followed by another, and it comes back.
func TestStrangersAtThePeerPorts(t *testing.T) {
	fed := start(t, 3, 1)
	leader, others := leaderAndOthers(t, fed)
	before, err := leader.Status(within(t))
	must(t, err)
	group := lineageOf(t, before)
	for i, s := range fed.Sites {
		keepSilent(t, s, 200)
		tellTerm(t, s, fed.Sites[(i+1)%3], group)
	}
	for range 12 {
		sendEmptyCalls(t, leader, others[0], group)
	}
	if mib, err := leader.ResidentMiB(); err != nil || mib > 400 {
		t.Errorf("the leader takes %.0f MiB, %v", mib, err)
	}
	submit(t, leader, testbed.Spec{Command: []string{"/bin/true"}})
	if now, err := leader.Status(within(t)); err != nil || now.Term > before.Term+100 {
		t.Errorf("term %d became %d, %v", before.Term, now.Term, err)
	}

	must(t, leader.Kill())
	home := newGated(t)
	a := submit(t, others[0], home.spec(3)) // one core is its own: two tasks need an order
	must(t, fed.Restart(within(t), leader))
	awaitRunning(t, others[0], a.ID, 3)
	home.open(t)
	agree(t, fed)
}

// lineageOf is how members of a federation that was never recovered name it.
func lineageOf(t *testing.T, st testbed.Status) [16]byte {
	t.Helper()
	id, err := hex.DecodeString(strings.ReplaceAll(st.Federation, "-", ""))
	must(t, err)
	return [16]byte(id)
}

// keepSilent holds n connections to a broker until the test ends; half of them send
// the first bytes of a greeting.
func keepSilent(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	peer, err := s.PeerAddress()
	must(t, err)
	for i := range n {
		conn, err := net.DialTimeout("tcp", peer, limit)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		if i%2 == 0 {
			_, _ = conn.Write([]byte("CSHR"))
		}
	}
}

// lure dials as one member, for raft's transport.
type lure struct {
	t     *testing.T
	as    *testbed.Site
	to    relay.Peer
	group [16]byte
}

func (l *lure) dial(kind relay.Kind) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	return (&relay.Dialer{Net: networkOf(l.t, filepath.Join(l.as.Dir, "data")), Site: l.as.Name}).Dial(
		ctx,
		l.to,
		kind,
		l.group,
	)
}

// Dial implements raft.StreamLayer.
func (l *lure) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return l.dial(relay.KindRaft)
}

// Accept implements net.Listener.
func (l *lure) Accept() (net.Conn, error) {
	<-l.t.Context().Done()
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *lure) Close() error { return nil }

// Addr implements net.Listener.
func (l *lure) Addr() net.Addr { return &net.TCPAddr{} }

// tellTerm sends a broker raft's requests of the greatest term, as a member.
func tellTerm(t *testing.T, s, as *testbed.Site, group [16]byte) {
	t.Helper()
	peer, err := s.PeerAddress()
	must(t, err)
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &lure{t: t, as: as, to: relay.Peer{Site: s.Name, Addr: peer}, group: group}, MaxPool: 1,
		Timeout: 5 * time.Second, Logger: hclog.NewNullLogger(),
	})
	defer func() { _ = trans.Close() }()
	header := raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax,
		ID:              []byte(as.Name),
		Addr:            []byte(as.Name + "@127.0.0.1:1"),
	}
	id, at := raft.ServerID(s.Name), raft.ServerAddress(peer)
	// Whether they are answered or cut does not matter.
	_ = trans.RequestPreVote(id, at, &raft.RequestPreVoteRequest{RPCHeader: header, Term: math.MaxUint64},
		new(raft.RequestPreVoteResponse))
	_ = trans.RequestVote(id, at, &raft.RequestVoteRequest{
		RPCHeader: header, Term: math.MaxUint64,
		LeadershipTransfer: true,
	}, new(raft.RequestVoteResponse))
	_ = trans.AppendEntries(id, at, &raft.AppendEntriesRequest{RPCHeader: header, Term: math.MaxUint64},
		new(raft.AppendEntriesResponse))
}

// sendEmptyCalls sends a broker frames of 4096 calls with no command each, until it has
// enough of them.
func sendEmptyCalls(t *testing.T, s, as *testbed.Site, group [16]byte) {
	t.Helper()
	peer, err := s.PeerAddress()
	must(t, err)
	conn, err := (&lure{t: t, as: as, to: relay.Peer{Site: s.Name, Addr: peer}, group: group}).dial(relay.KindForward)
	if err != nil {
		return // its table is full
	}
	defer func() { _ = conn.Close() }()
	frame := append(relay.Frame(nil), 1) // calls
	frame = binary.AppendUvarint(binary.BigEndian.AppendUint64(frame, 7), 4096)
	for seq := range uint64(4096) {
		frame = binary.AppendUvarint(frame, seq)
		frame = binary.AppendUvarint(frame, 0)
	}
	relay.EndFrame(frame)
	_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	for range 100 {
		if _, err := conn.Write(frame); err != nil {
			return
		}
	}
}
