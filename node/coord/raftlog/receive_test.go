package raftlog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func headerOf(site string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(site + "@h:1")}
}

// followers returns the leader and two followers of a group of three.
func followers(t *testing.T, c *cluster) (lead, b, x *Log) {
	t.Helper()
	lead = c.leader(t)
	for _, l := range c.running() {
		switch {
		case l == lead:
		case b == nil:
			b = l
		default:
			x = l
		}
	}
	return lead, b, x
}

// elects has the leader cut off and wants another one to answer.
func elects(t *testing.T, c *cluster) {
	t.Helper()
	lead, next, _ := followers(t, c)
	c.Cut(lead.cfg.Site)
	if _, err := next.Sync(patience(t)); err != nil {
		t.Errorf("no election afterwards: %v", err)
	}
}

// TestRequestsInAnotherName: a member that speaks raft in another member's name over
// its own connection is cut off. Once it could depose a leader or end a follower's
// patience with it in any voter's name.
func TestRequestsInAnotherName(t *testing.T) {
	c := newCluster(t)
	for _, site := range []string{"a", "b", "c"} {
		register(t, c.open(t, site))
	}
	lead, to, member := followers(t, c)
	term := lead.raft.CurrentTerm()
	s := &stranger{
		Dialer: relay.Dialer{Net: &relay.Network{}, Site: member.cfg.Site}, fed: c.fed, means: to.cfg.Site,
		over: make(chan struct{}),
	}
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxRPCsInFlight: 1,
		Timeout: 5 * time.Second, Logger: raftLogger(testLogger()),
	})
	defer nt.CloseStreams()
	defer nt.Close()
	addr := raft.ServerAddress(to.Addr())
	half := headerOf(member.cfg.Site)
	half.Addr = []byte(lead.cfg.Site + "@h:1")
	for name, h := range map[string]raft.RPCHeader{"the leader's": headerOf(lead.cfg.Site), "the receiver's": headerOf(to.cfg.Site), "nobody's": {}, "its own at the leader's address": half} {
		for what, err := range map[string]error{
			"vote": nt.RequestVote("", addr, &raft.RequestVoteRequest{
				RPCHeader: h, Term: term + 1,
				LastLogTerm: term + 1, LeadershipTransfer: true,
			}, &raft.RequestVoteResponse{}),
			"pre-vote": nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: h, Term: term + 1},
				&raft.RequestPreVoteResponse{}),
			"append": nt.AppendEntries("", addr, &raft.AppendEntriesRequest{RPCHeader: h, Term: term + 1},
				&raft.AppendEntriesResponse{}),
			"heartbeat": nt.AppendEntries("", addr, &raft.AppendEntriesRequest{RPCHeader: h, Term: term},
				&raft.AppendEntriesResponse{}),
			"timeout now": nt.TimeoutNow("", addr, &raft.TimeoutNowRequest{RPCHeader: h}, &raft.TimeoutNowResponse{}),
			"snapshot": nt.InstallSnapshot("", addr, &raft.InstallSnapshotRequest{
				RPCHeader: h, SnapshotVersion: 1, Term: term + 1,
				LastLogIndex: 1,
			},
				&raft.InstallSnapshotResponse{}, strings.NewReader("")),
		} {
			if err == nil || !strings.Contains(err.Error(), transport.ErrRequest.Error()) {
				t.Errorf("%s in %s name: %v", what, name, err)
			}
		}
	}
	if now := to.raft.CurrentTerm(); now != term {
		t.Errorf("the term went from %d to %d", term, now)
	}
	if err := nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: headerOf(member.cfg.Site), Term: term},
		&raft.RequestPreVoteResponse{}); err != nil {
		t.Errorf("in its own name: %v", err)
	}
	elects(t, c)
}

// kernelBuffers is more than a connection's two ends hold of what nobody has read.
const kernelBuffers = 64 << 20

// hostileBytes are some of what no member sends; package transport has all.
func hostileBytes() map[string][]byte {
	key := func(name string) []byte { return append([]byte{0, 0x81, 0xa0 | byte(len(name))}, name...) }
	return map[string][]byte{
		"unknown kind": {99},
		"garbage":      append([]byte{0}, bytes.Repeat([]byte{0xde}, 100)...),
		"huge string":  append(key("Leader"), 0xc6, 0xff, 0xff, 0xff, 0xff),
		"huge list":    append(key("Entries"), 0xdd, 0xff, 0xff, 0xff, 0xff),
	}
}

// TestHostileRaftBytes: what is no request of a member ends the connection, whatever
// length it promises, with a line in ten seconds; elections go on.
func TestHostileRaftBytes(t *testing.T) {
	c := newCluster(t)
	out := &lines{}
	for _, site := range []string{"a", "b", "c"} {
		cfg := c.config(site, coordtest.NewMachine())
		cfg.Logger = zerolog.New(out)
		l, err := Open(patience(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.logs[site] = l
		c.mu.Unlock()
		c.net.Join(site, l.Addr())
	}
	lead := c.leader(t)
	await(t, "three voters", func() bool { return len(lead.Status().Voters) == 3 })
	endless := make([]byte, 64<<10)
	for name, b := range hostileBytes() {
		d := relay.Dialer{Net: &relay.Network{}, Site: "b"}
		conn, err := d.Dial(patience(t), relay.Peer{Site: "a", Addr: c.logs["a"].Addr()}, relay.KindRaft, c.fed)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
		_, err = conn.Write(b)
		sent := 0
		for err == nil && sent < 256<<20 {
			var n int
			n, err = conn.Write(endless)
			sent += n
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) || sent > 16<<20+kernelBuffers {
			t.Errorf("%s: %d bytes were taken behind it, %v", name, sent, err)
		}
		_ = conn.Close()
	}
	if n := out.count("raft request"); n < 1 || n > 5 { // in its name, or refused as such
		t.Errorf("%d log lines about it: %s", n, out.b.String())
	}
	register(t, c.logs["a"])
	elects(t, c)
}

// TestProfilesSendWhatIsTaken: a leader sends no more entries at once than a follower takes.
func TestProfilesSendWhatIsTaken(t *testing.T) {
	for _, p := range []Profile{LAN, WAN} {
		if n := timingOf(p).maxAppend; n > transport.MaxEntries {
			t.Errorf("profile %d sends %d entries, %d are taken", p, n, transport.MaxEntries)
		}
	}
}

// TestFollowerCatchesUpOnLargeEntries: more than one request takes.
func TestFollowerCatchesUpOnLargeEntries(t *testing.T) {
	c := newCluster(t)
	c.time.rpc, c.time.reply, c.time.enqueue = 20*time.Second, 20*time.Second, 20*time.Second // the machine may be busy
	c.time.heartbeat, c.time.election, c.time.lease = 2*time.Second, 2*time.Second, 2*time.Second
	for _, site := range []string{"a", "b", "c"} {
		c.open(t, site)
	}
	lead, behind, _ := followers(t, c)
	id := register(t, lead)
	c.Lag(behind.cfg.Site)
	const size = command.MaxPayload / 2
	for range 5 {
		var calls []command.Command
		for range 3 {
			id.Seq++
			calls = append(calls, command.Command{ID: id, Body: &command.Submit{Jobs: []command.JobSpec{{
				Num: id.Seq, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
				Payload: make([]byte, size),
			}}}})
		}
		if _, err := lead.Propose(patience(t), calls...); err != nil {
			t.Fatal(err)
		}
	}
	c.Heal(behind.cfg.Site)
	want := lead.raft.LastIndex()
	await(t, "the follower has the entries", func() bool { return behind.raft.AppliedIndex() >= want })
}
