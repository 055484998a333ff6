package raftlog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// speaks returns a raft transport that greets a member in a site's name.
func speaks(t *testing.T, c *cluster, site string, to *Log) *raft.NetworkTransport {
	t.Helper()
	s := &stranger{
		Dialer: relay.Dialer{Net: &relay.Network{}, Site: site}, fed: c.fed, means: to.cfg.Site,
		over: make(chan struct{}),
	}
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxRPCsInFlight: 1,
		Timeout: 5 * time.Second, Logger: raftLogger(testLogger()),
	})
	t.Cleanup(func() {
		_ = nt.Close()
		nt.CloseStreams()
	})
	return nt
}

// three opens three registered voters.
func three(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	for _, site := range []string{"a", "b", "c"} {
		register(t, c.open(t, site))
	}
	return c
}

// settled wants every member to answer current reads.
func settled(t *testing.T, c *cluster, why string) {
	t.Helper()
	for _, l := range c.running() {
		if _, err := l.Sync(patience(t)); err != nil {
			t.Errorf("%s: %s answers no current read: %v", why, l.cfg.Site, err)
		}
	}
}

// TestForgedLeaderLocksNobodyOut: one request of a stranger, who says that it leads the
// next term, had a member refuse the leader that the others elected then, for as long
// as that one led.
func TestForgedLeaderLocksNobodyOut(t *testing.T) {
	for name, entries := range map[string][]*raft.Log{"heartbeat": nil, "refused": {nil}} {
		t.Run(name, func(t *testing.T) {
			c := three(t)
			lead, to, other := followers(t, c)
			term := lead.raft.CurrentTerm()
			q := &raft.AppendEntriesRequest{RPCHeader: headerOf("zz"), Term: term + 1, Entries: entries}
			_ = speaks(t, c, "zz", to).AppendEntries("", raft.ServerAddress(to.Addr()), q, &raft.AppendEntriesResponse{})
			if entries != nil { // no term was begun by it
				if err := lead.raft.LeadershipTransferToServer(raft.ServerID(other.cfg.Site),
					transport.ServerAddress(other.cfg.Site, other.Addr())).Error(); err != nil {
					t.Fatal(err)
				}
			}
			settled(t, c, "after a forged leader")
		})
	}
}

// TestFarTermInAnAnswerStopsNoConfirmation: one answer with a later term, to a heartbeat,
// which raft takes no term from, ended all current reads and renewals at the leader.
func TestFarTermInAnAnswerStopsNoConfirmation(t *testing.T) {
	c := three(t)
	lead, to, _ := followers(t, c)
	honest := to.trans.HeartbeatHandler()
	var told atomic.Bool
	to.trans.SetHeartbeatHandler(func(rpc raft.RPC) {
		if told.Swap(true) {
			honest(rpc)
			return
		}
		q, _ := rpc.Command.(*raft.AppendEntriesRequest)
		rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: headerOf(to.cfg.Site), Term: q.Term + 500, Success: true},
			nil)
	})
	await(t, "the answer", told.Load)
	settled(t, c, "after the answer of "+to.cfg.Site)
	if lead.Err() != nil {
		t.Error(lead.Err())
	}
}

// TestFarVoteLocksNobodyOut: one vote request with a term far ahead, in a voter's name.
func TestFarVoteLocksNobodyOut(t *testing.T) {
	c := three(t)
	lead, to, other := followers(t, c)
	term := lead.raft.CurrentTerm()
	q := &raft.RequestVoteRequest{
		RPCHeader: headerOf(other.cfg.Site), Term: term + transport.MaxAhead/2,
		LeadershipTransfer: true,
	}
	_ = speaks(t, c, other.cfg.Site, to).RequestVote("", raft.ServerAddress(to.Addr()), q, &raft.RequestVoteResponse{})
	begun := time.Now()
	settled(t, c, "after a far vote request")
	t.Logf("all are back after %v", time.Since(begun))
}

// forward opens a forward connection in a site's name, sends a question and returns the
// answer's code.
func forward(t *testing.T, c *cluster, site string, to *Log, question []byte) byte {
	t.Helper()
	d := relay.Dialer{Net: &relay.Network{}, Site: site}
	conn, err := d.Dial(patience(t), relay.Peer{Site: to.cfg.Site, Addr: to.Addr()}, relay.KindForward, c.fed)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = conn.Write(relay.EndFrame(append(relay.Frame(nil), question...))); err != nil {
		t.Fatal(err)
	}
	b, err := relay.ReadFrame(conn, nil, relay.MaxFrame)
	if err != nil || len(b) < 3 {
		t.Fatalf("answer %x: %v", b, err)
	}
	_, n := binary.Uvarint(b[1:])
	return b[1+n]
}

// staying is a machine of which no site has left.
type staying struct{ *coordtest.Machine }

func (staying) HasLeft(string) bool { return false }

// TestStrangersRemoveAndDemoteNobody: a frame of a stranger took any voter out of the
// group, or its vote.
func TestStrangersRemoveAndDemoteNobody(t *testing.T) {
	c := newCluster(t)
	for _, site := range []string{"a", "b", "c"} {
		c.Open(t, site, staying{coordtest.NewMachine()})
	}
	lead, b, x := followers(t, c)
	remove := append([]byte{3, 1, byte(len(b.cfg.Site))}, b.cfg.Site...)
	for _, as := range []string{"zz", x.cfg.Site, b.cfg.Site} {
		if code := forward(t, c, as, lead, remove); code == 0 {
			t.Errorf("a stranger as %s removes %s", as, b.cfg.Site)
		}
	}
	if code := forward(t, c, x.cfg.Site, lead, []byte{7, 1}); code == 0 {
		t.Errorf("a stranger as %s takes its vote", x.cfg.Site)
	}
	if v := lead.Status().Voters; !slices.Equal(v, []string{"a", "b", "c"}) {
		t.Errorf("voters are %v", v)
	}
}

// TestStrangersStopNoHandover: join connections that never finish their question, in the
// leader's name, had every voter refuse the leader's own: so an unfit leader led on.
func TestStrangersStopNoHandover(t *testing.T) {
	handed := make(chan string, 16)
	c := newCluster(t)
	c.hooks.HandOver = func(why string) { handed <- why }
	for _, site := range []string{"a", "b", "c"} {
		register(t, c.open(t, site))
	}
	lead, b, x := followers(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for _, l := range []*Log{b, x} {
		p := relay.Preamble{Kind: relay.KindJoin, Site: lead.cfg.Site}.Encode()
		crowd(ctx, t, &wg, l.Addr(), 16, append(p, 0, 0, 1)) // a part of a frame's length
	}
	term := lead.raft.CurrentTerm()
	lead.SetUnfit("a test")
	select {
	case why := <-handed:
		if why != string(reasonUnfit) || lead.raft.CurrentTerm() > term+1 {
			t.Errorf("handed over for %q, in term %d after %d", why, lead.raft.CurrentTerm(), term)
		}
	case <-time.After(coordtest.Patience):
		t.Error("an unfit leader finds no voter that takes over")
	}
}

// posing answers greetings and questions on a port of its own as a site would; what it
// says of itself is a.
func posing(t *testing.T, a joinReply) (addr string) {
	t.Helper()
	return serving(t, func(conn net.Conn) {
		if _, err := relay.ReadPreamble(conn); err != nil {
			return
		}
		_, _ = conn.Write(append([]byte{1, byte(len(a.Site))}, a.Site...))
		if _, err := relay.ReadFrame(conn, nil, maxJoinFrame); err != nil {
			return
		}
		a.Addr = conn.LocalAddr().String()
		b, _ := json.Marshal(a)
		_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...)))
	})
}

// passing passes what comes on a port of its own on to another address.
func passing(t *testing.T, to string) (addr string) {
	t.Helper()
	return serving(t, func(conn net.Conn) {
		far, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
		if err != nil {
			return
		}
		defer far.Close()
		go func() { _, _ = io.Copy(far, conn) }()
		_, _ = io.Copy(conn, far)
	})
}

// serving handles the connections of a port until the test ends.
func serving(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = conn.Close() })()
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	return ln.Addr().String()
}

// TestStrangerMovesNobody: a stranger asks a running member who it is, and has the leader
// take an address of the stranger's for it: there the member answers through a relay, or
// somebody as the member. Both once became the member's address, and it heard no more.
func TestStrangerMovesNobody(t *testing.T) {
	c := three(t)
	lead, b, _ := followers(t, c)
	d := dialer{&relay.Dialer{Net: &relay.Network{}, Site: "zz"}}
	who, err := d.join(patience(t), relay.Peer{Addr: b.Addr()}, joinRequest{Who: true})
	if err != nil {
		t.Fatal(err)
	}
	for what, addr := range map[string]string{"a relay": passing(t, b.Addr()), "an impostor": posing(t, who)} {
		q := b.line.request()
		q.Site, q.Node, q.Instance, q.Addr = who.Site, who.Node, who.Instance, addr
		a, err := d.join(patience(t), relay.Peer{Addr: lead.Addr()}, q)
		if err != nil || a.Code != joinRefused {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
		if at := lead.configuredPeer(b.cfg.Site).Addr; at != b.Addr() {
			t.Errorf("%s: the group has %s at %s, it is at %s", what, b.cfg.Site, at, b.Addr())
		}
	}
}

// TestNobodySpeaksToAMemberInItsOwnName: a stranger who greets the leader in its own name
// asked it to give up its vote, and each time it handed the leadership over.
func TestNobodySpeaksToAMemberInItsOwnName(t *testing.T) {
	c := three(t)
	lead := c.leader(t)
	term := lead.raft.CurrentTerm()
	d := relay.Dialer{Net: &relay.Network{}, Site: lead.cfg.Site}
	conn, err := d.Dial(patience(t), relay.Peer{Site: lead.cfg.Site, Addr: lead.Addr()}, relay.KindForward, c.fed)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
		_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), 7, 1)))
		if b, err := relay.ReadFrame(conn, nil, relay.MaxFrame); err == nil {
			t.Errorf("it is answered: %x", b)
		}
	}
	if now := c.leader(t); now != lead || now.raft.CurrentTerm() != term {
		t.Errorf("%s led term %d, now %s leads term %d", lead.cfg.Site, term, now.cfg.Site, now.raft.CurrentTerm())
	}
}
