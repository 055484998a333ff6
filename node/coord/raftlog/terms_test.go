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

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestTermGuard: which terms of peers a member believes.
func TestTermGuard(t *testing.T) {
	begun := time.Unix(1000, 0)
	for _, c := range []struct {
		name         string
		ours, theirs uint64
		fresh        bool
		after        time.Duration // the check before
		refused      bool
	}{
		{"an older one", 100, 7, false, 0, false},
		{"the next", 100, 101, false, 0, false},
		{"a jump", 101, 5000, false, time.Hour, false},
		{"another", 5000, 10_000, false, 2 * time.Second, true},
		{"the next after a jump", 5000, 5001, false, 0, false},
		{"another jump in time", 5001, 5001 + maxAhead, false, time.Hour, false},
		{"too far", 7, 8 + maxAhead, false, time.Hour, true},
		{"too far, without a log", 0, 8 + maxAhead, true, time.Hour, false},
		{"the greatest, without a log", 0, maxTerm + 1, true, time.Hour, true},
		{"beyond the greatest", maxTerm, maxTerm + 1, false, time.Hour, true},
		{"the greatest there is", 7, math.MaxUint64, false, time.Hour, true},
	} {
		g := &termGuard{}
		_ = g.check(101, 5000, false, begun)
		if c.after > 0 && c.name != "another" {
			begun = begun.Add(c.after)
		}
		if err := g.check(c.ours, c.theirs, c.fresh, begun.Add(c.after)); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// still is a follower of term 7 among the voters a and b.
type still struct{ *raft.Raft }

func (still) CurrentTerm() uint64                               { return 7 }
func (still) LastIndex() uint64                                 { return 1 }
func (still) LeaderWithID() (raft.ServerAddress, raft.ServerID) { return "", "" }
func (still) GetConfiguration() raft.ConfigurationFuture        { return twoVoters{} }

type twoVoters struct{ raft.ConfigurationFuture }

func (twoVoters) Configuration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: "a"}, {ID: "b"}}}
}

// TestRefusedRequestsTakeNoJump: what is refused for another reason than its term
// leaves the one jump of a minute to members.
func TestRefusedRequestsTakeNoJump(t *testing.T) {
	const ahead = 7 + 2*freeRise
	by := func(site string) raft.RPCHeader {
		return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(site)}
	}
	for what, q := range map[string]any{
		"vote":     &raft.RequestVoteRequest{RPCHeader: by("x"), Term: 7 + maxAhead},
		"pre-vote": &raft.RequestPreVoteRequest{RPCHeader: by("x"), Term: 7 + maxAhead},
		"append":   &raft.AppendEntriesRequest{RPCHeader: by("b"), Term: 7 + maxAhead, Entries: []*raft.Log{nil}},
		"snapshot": &raft.InstallSnapshotRequest{RPCHeader: by("b"), Term: 7 + maxAhead},
	} {
		tr := &transport{}
		if err := tr.judge(still{}, q); !errors.Is(err, errRequest) {
			t.Errorf("%s: %v", what, err)
		}
		tr.terms.begun = time.Time{} // a moment later
		if err := tr.judge(still{}, &raft.AppendEntriesRequest{RPCHeader: by("b"), Term: ahead}); err != nil {
			t.Errorf("a member behind the %s: %v", what, err)
		}
	}
}

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

func (s *stranger) Addr() net.Addr { return advertised("stranger:1") }

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
		{RPCHeader: header, Term: maxTerm + 1, LeadershipTransfer: true},
		{RPCHeader: header, Term: term + maxAhead + 1, LeadershipTransfer: true},
		{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}, Term: term + 1, LeadershipTransfer: true, LastLogTerm: most},
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
		s := &stranger{Dialer: relay.Dialer{Net: &relay.Network{}, Site: string(header.ID)}, fed: c.fed, means: l.cfg.Site, over: make(chan struct{})}
		nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: s, MaxPool: 0, MaxRPCsInFlight: 1, Timeout: 5 * time.Second, Logger: raftLogger(testLogger())})
		addr := raft.ServerAddress(l.Addr())
		refused := func(what string, i int, err error) {
			if err == nil || !strings.Contains(err.Error(), errRequest.Error()) && !strings.Contains(err.Error(), errTerm.Error()) {
				t.Errorf("%s %d at %s: %v", what, i, l.cfg.Site, err)
			}
		}
		for i, q := range votes {
			refused("vote", i, nt.RequestVote("", addr, q, &raft.RequestVoteResponse{}))
			refused("pre-vote", i, nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: q.RPCHeader, Term: q.Term}, &raft.RequestPreVoteResponse{}))
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
	b, err := openStore(a.cfg.Dir)
	if err == nil {
		err = errors.Join(b.SetUint64(keyCurrentTerm, math.MaxUint64), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.openErr(t, "a", ErrTerm, func(*Config) {}, a.cfg.Dir, "cloudshare recover", "join as a new site")
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

// racing is a follower that a late heartbeat of the former leader told of that one, in
// the term of the next.
type racing struct {
	still
	state raft.RaftState
}

func (r racing) State() raft.RaftState                           { return r.state }
func (racing) LeaderWithID() (raft.ServerAddress, raft.ServerID) { return "a@a:1", "a" }

// TestNameOfTheFormerLeaderRefusesNobody: such a follower refused the next leader until
// its patience with the former one had ended, which cost that one its leadership.
func TestNameOfTheFormerLeaderRefusesNobody(t *testing.T) {
	term := still{}.CurrentTerm()
	var l termLeader
	follower := racing{state: raft.Follower}
	for _, c := range []struct {
		id   raft.ServerID
		term uint64
		ok   bool
	}{{"a", term - 1, true}, {"b", term, true}, {"b", term, true}, {"a", term, false}, {"a", term - 1, true}, {"b", term, true}, {"c", term + 1, true}} {
		if err := l.check(follower, c.id, c.term); (err == nil) != c.ok {
			t.Errorf("%s as the leader of term %d: %v", c.id, c.term, err)
		}
	}
	if new(termLeader).check(racing{state: raft.Leader}, "b", term) == nil {
		t.Error("a leader follows another one of its own term")
	}
}
