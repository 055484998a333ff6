package raftlog

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// stranger is a stream that greets in a member's name.
type stranger struct {
	relay.Dialer
	fed   [16]byte
	means string
	over  chan struct{}
}

func (s *stranger) Dial(addr raft.ServerAddress, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return s.Dialer.Dial(ctx, relay.Peer{Site: s.means, Addr: string(addr)}, relay.KindRaft, s.fed)
}

func (s *stranger) Accept() (net.Conn, error) {
	<-s.over
	return nil, net.ErrClosed
}

func (s *stranger) Close() error {
	close(s.over)
	return nil
}

func (s *stranger) Addr() net.Addr { return &net.UnixAddr{Name: "stranger:1", Net: "tcp"} }

// TestHostileRaftRequests: requests that no member sends, in a voter's name, leave
// term, leader and process as they are. A vote request of term 2^64-1 to each broker
// once ended a federation for good.
func TestHostileRaftRequests(t *testing.T) {
	c := newCluster(t)
	sites := []string{"a", "b", "c"}
	for _, site := range sites {
		register(t, c.open(t, site))
	}
	lead := c.leader(t)
	term := lead.raft.CurrentTerm()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte("b")}
	if lead.cfg.Site == "b" {
		header.ID, header.Addr = []byte("c"), []byte("c")
	}
	nobody := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("x"), Addr: []byte("x")}
	entry := func(kind raft.LogType) []*raft.Log {
		return []*raft.Log{{Index: 1, Term: 1, Type: kind, Data: []byte("x")}}
	}
	const most = math.MaxUint64
	votes := []*raft.RequestVoteRequest{
		{RPCHeader: header, Term: most, LeadershipTransfer: true},
		{RPCHeader: header, Term: transport.MaxTerm + 1, LeadershipTransfer: true},
		{RPCHeader: header, Term: term + transport.MaxAhead + 1, LeadershipTransfer: true},
		{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}, Term: term + 1,
			LeadershipTransfer: true,
			LastLogTerm:        most,
		},
		{RPCHeader: nobody, Term: term + 1, LeadershipTransfer: true, LastLogTerm: most},
	}
	appends := []*raft.AppendEntriesRequest{
		{RPCHeader: header, Term: most},
		{RPCHeader: header, Term: most, LeaderCommitIndex: most},
		{RPCHeader: header, Term: term},
		{RPCHeader: header, Term: term + 1, Entries: []*raft.Log{nil}},
		{RPCHeader: header, Term: term + 1, Entries: entry(raft.LogConfiguration)},
		{RPCHeader: header, Term: term + 1, Entries: entry(raft.LogAddPeerDeprecated)},
		{RPCHeader: header, Term: term + 1, Entries: entry(99)},
		{RPCHeader: header, Term: term + 1, PrevLogEntry: most, Entries: entry(raft.LogCommand)},
		{RPCHeader: header, Term: term + 1, Entries: []*raft.Log{{Index: most, Term: 1}}},
		{RPCHeader: header, Term: term + 1, Entries: []*raft.Log{{Index: 1, Term: most}}},
	}
	snapshots := []*raft.InstallSnapshotRequest{
		{RPCHeader: header, SnapshotVersion: 1, Term: most, LastLogIndex: 1},
		{RPCHeader: header, SnapshotVersion: 1, Term: term + 1, LastLogIndex: 1, Configuration: []byte("x")},
		{RPCHeader: header, SnapshotVersion: 0, Term: term + 1, LastLogIndex: 1, Peers: []byte("x")},
		{RPCHeader: header, SnapshotVersion: 1, Term: term + 1, LastLogIndex: 1, Size: -1},
	}
	for _, l := range c.running() {
		if l.cfg.Site == string(header.ID) {
			continue // nobody greets a member in its own name
		}
		s := &stranger{
			Dialer: relay.Dialer{Net: &relay.Network{}, Site: string(header.ID)}, fed: c.fed,
			means: l.cfg.Site, over: make(chan struct{}),
		}
		nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: s, MaxPool: 0, MaxRPCsInFlight: 1,
			Timeout: 5 * time.Second, Logger: raftLogger(testLogger()),
		})
		addr := raft.ServerAddress(l.Addr())
		refused := func(what string, i int, err error) {
			if err == nil || !strings.Contains(err.Error(), transport.ErrRequest.Error()) &&
				!strings.Contains(err.Error(), transport.ErrAbsurdTerm.Error()) {
				t.Errorf("%s %d at %s: %v", what, i, l.cfg.Site, err)
			}
		}
		for i, q := range votes {
			refused("vote", i, nt.RequestVote("", addr, q, &raft.RequestVoteResponse{}))
			refused("pre-vote", i, nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: q.RPCHeader, Term: q.Term},
				&raft.RequestPreVoteResponse{}))
		}
		for i, q := range appends {
			refused("append", i, nt.AppendEntries("", addr, q, &raft.AppendEntriesResponse{}))
		}
		for i, q := range snapshots {
			refused("snapshot", i, nt.InstallSnapshot("", addr, q, &raft.InstallSnapshotResponse{}, strings.NewReader("")))
		}
		refused("timeout now", 0, nt.TimeoutNow("", addr, &raft.TimeoutNowRequest{RPCHeader: header}, &raft.TimeoutNowResponse{}))
		_ = nt.Close()
		nt.CloseStreams()
	}
	for _, l := range c.running() {
		if _, err := l.Sync(patience(t)); err != nil {
			t.Errorf("%s: %v", l.cfg.Site, err)
		}
		if now := l.raft.CurrentTerm(); now > term+100 {
			t.Errorf("%s is in term %d, after %d", l.cfg.Site, now, term)
		}
	}
}

// TestAbsurdTermOnDisk: a broker with such a term from before terms were bounded says
// so with the remedy, and the remedy helps.
func TestAbsurdTermOnDisk(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	register(t, a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := store.Open(a.cfg.Dir)
	if err == nil {
		err = errors.Join(b.SetUint64(keyCurrentTerm, math.MaxUint64), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.openErr(t, "a", ErrTerm, func(*Config) {}, a.cfg.Dir, "cloudshare recover", "come back on an empty one")
	for _, crash := range []string{"mark", "rewrite", "prune", "term"} { // a crash behind the last found nothing to recover from
		wants(t, Recover(patience(t), c.offline("a", crash), 0), errCrash)
	}
	if err := Recover(patience(t), c.offline("a", ""), 0); err != nil {
		t.Fatal(err)
	}
	again := c.open(t, "a")
	if _, err := again.Sync(patience(t)); err != nil || again.raft.CurrentTerm() > 1000 {
		t.Errorf("after the recovery: term %d, %v", again.raft.CurrentTerm(), err)
	}
}
