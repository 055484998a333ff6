package raftlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func headerOf(site string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(site + "@h:1")}
}

// encoded is a raft request as it is sent.
func encoded(t testing.TB, kind byte, request any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, msgpack()).Encode(request); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
	s := &stranger{Dialer: relay.Dialer{Net: &relay.Network{}, Site: member.cfg.Site}, fed: c.fed, means: to.cfg.Site, over: make(chan struct{})}
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: s, MaxRPCsInFlight: 1, Timeout: 5 * time.Second, Logger: raftLogger(testLogger())})
	defer nt.CloseStreams()
	defer nt.Close()
	addr := raft.ServerAddress(to.Addr())
	half := headerOf(member.cfg.Site)
	half.Addr = []byte(lead.cfg.Site + "@h:1")
	for name, h := range map[string]raft.RPCHeader{"the leader's": headerOf(lead.cfg.Site), "the receiver's": headerOf(to.cfg.Site), "nobody's": {}, "its own at the leader's address": half} {
		for what, err := range map[string]error{
			"vote":        nt.RequestVote("", addr, &raft.RequestVoteRequest{RPCHeader: h, Term: term + 1, LastLogTerm: term + 1, LeadershipTransfer: true}, &raft.RequestVoteResponse{}),
			"pre-vote":    nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: h, Term: term + 1}, &raft.RequestPreVoteResponse{}),
			"append":      nt.AppendEntries("", addr, &raft.AppendEntriesRequest{RPCHeader: h, Term: term + 1}, &raft.AppendEntriesResponse{}),
			"heartbeat":   nt.AppendEntries("", addr, &raft.AppendEntriesRequest{RPCHeader: h, Term: term}, &raft.AppendEntriesResponse{}),
			"timeout now": nt.TimeoutNow("", addr, &raft.TimeoutNowRequest{RPCHeader: h}, &raft.TimeoutNowResponse{}),
			"snapshot": nt.InstallSnapshot("", addr, &raft.InstallSnapshotRequest{RPCHeader: h, SnapshotVersion: 1, Term: term + 1, LastLogIndex: 1},
				&raft.InstallSnapshotResponse{}, strings.NewReader("")),
		} {
			if err == nil || !strings.Contains(err.Error(), errRequest.Error()) {
				t.Errorf("%s in %s name: %v", what, name, err)
			}
		}
	}
	if now := to.raft.CurrentTerm(); now != term {
		t.Errorf("the term went from %d to %d", term, now)
	}
	if err := nt.RequestPreVote("", addr, &raft.RequestPreVoteRequest{RPCHeader: headerOf(member.cfg.Site), Term: term}, &raft.RequestPreVoteResponse{}); err != nil {
		t.Errorf("in its own name: %v", err)
	}
	elects(t, c)
}

// hostileBytes are requests that no member sends, without end where one is promised.
func hostileBytes(t testing.TB) map[string][]byte {
	key := func(name string) []byte { return append([]byte{0, 0x81, 0xa0 | byte(len(name))}, name...) }
	many := encoded(t, requestAppend, &raft.AppendEntriesRequest{RPCHeader: headerOf("b"), Entries: make([]*raft.Log, maxEntries+1)})
	return map[string][]byte{
		"unknown kind":    {99},
		"garbage":         append([]byte{0}, bytes.Repeat([]byte{0xde}, 100)...),
		"huge string":     append(key("Leader"), 0xc6, 0xff, 0xff, 0xff, 0xff),
		"huge key":        {1, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"huge list":       append(key("Entries"), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"list of names":   append(key("Entries"), 0x81, 0xa1, 'x', 0x80),
		"too many":        many,
		"long vote":       encoded(t, requestVote, &raft.RequestVoteRequest{RPCHeader: headerOf("b"), Candidate: make([]byte, maxPlain)}), //nolint:staticcheck // raft still decodes it
		"deep":            append(key("x"), bytes.Repeat([]byte{0x91}, 1<<20)...),
		"short entries":   append(key("Entries"), append([]byte{0xdc, 0x7f, 0xff}, bytes.Repeat([]byte{0x80}, 0x7fff)...)...),
		"long snapshot":   encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{RPCHeader: headerOf("b"), SnapshotVersion: 1, LastLogIndex: 1, Size: maxSnapshot + 1}),
		"half a snapshot": encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{RPCHeader: headerOf("b"), Configuration: make([]byte, maxSnapshotHead)}),
	}
}

// kernelBuffers is more than a connection's two ends hold of what nobody has read.
const kernelBuffers = 64 << 20

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
	for name, b := range hostileBytes(t) {
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
		if err == nil || errors.Is(err, context.DeadlineExceeded) || sent > limitOf(requestAppend)+kernelBuffers {
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

// receiving is a transport whose raft answers nothing by itself.
func receiving(complaints *atomic.Int32) *transport {
	tr := &transport{
		screened: make(chan raft.RPC), shut: make(chan struct{}), within: time.Second,
		complain: func(net.Conn, error) { complaints.Add(1) },
	}
	tr.raft.Store(new(view(still{})))
	return tr
}

// TestSlowRequestIsCutOff: a request that comes byte by byte ends after the time of
// one request; a connection may be silent between two.
func TestSlowRequestIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var complaints atomic.Int32
		tr := receiving(&complaints)
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			tr.serve(far, relay.Preamble{Site: "b"})
		}()
		<-time.After(time.Hour)
		if complaints.Load() != 0 {
			t.Error("a silent connection is cut off")
		}
		begun := time.Now()
		for range 1000 {
			if _, err := near.Write([]byte{0x00}); err != nil {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		<-done
		if took := time.Since(begun); took > 2*tr.within || complaints.Load() != 1 {
			t.Errorf("cut off after %v, %d complaints", took, complaints.Load())
		}
	})
}

// TestSlowSnapshotIsCutOff: raft's main goroutine waits for a snapshot's bytes.
func TestSlowSnapshotIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		step, pause int // bytes, ms
		whole       bool
	}{"steady": {64 << 10, 200, true}, "drip": {16, 900, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 4 << 20
				tr := receiving(new(atomic.Int32))
				near, far := net.Pipe()
				var wg sync.WaitGroup
				wg.Go(func() { tr.serve(far, relay.Preamble{Site: "b"}) })
				wg.Go(func() {
					_, _ = near.Write(encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{
						RPCHeader: headerOf("b"), SnapshotVersion: 1, Term: 8, LastLogIndex: 1, Size: size,
						Configuration: raft.EncodeConfiguration(raft.Configuration{}),
					}))
					for sent := 0; sent < size; sent += c.step {
						if _, err := near.Write(make([]byte, c.step)); err != nil {
							return
						}
						<-time.After(time.Duration(c.pause) * time.Millisecond)
					}
				})
				rpc := <-tr.screened
				begun := time.Now()
				n, err := io.Copy(io.Discard, rpc.Reader)
				if c.whole && (n != size || err != nil) {
					t.Errorf("%d of %d bytes, %v", n, size, err)
				}
				if took := time.Since(begun); !c.whole && (err == nil || took > 10*tr.within) {
					t.Errorf("raft waits %v for %d bytes, %v", took, n, err)
				}
				close(tr.shut)
				_ = near.Close()
				wg.Wait()
			})
		})
	}
}

// TestAppendRequestsAreBounded: what a leader sends at once is what a follower takes.
func TestAppendRequestsAreBounded(t *testing.T) {
	entry := func(size int) *raft.Log { return &raft.Log{Data: make([]byte, size)} }
	for name, c := range map[string]struct {
		entries []*raft.Log
		want    int
	}{
		"none":              {nil, 0},
		"one of any size":   {[]*raft.Log{entry(maxEntry), entry(1)}, 1},
		"up to the limit":   {[]*raft.Log{entry(maxAppendBytes / 2), entry(maxAppendBytes / 2), entry(1)}, 2},
		"the first is last": {[]*raft.Log{entry(1), entry(maxEntry)}, 1},
	} {
		if n := len(boundEntries(c.entries)); n != c.want {
			t.Errorf("%s: %d of %d entries, want %d", name, n, len(c.entries), c.want)
		}
	}
	for _, p := range []Profile{LAN, WAN} {
		if n := p.timing().maxAppend; n > maxEntries {
			t.Errorf("profile %d sends %d entries, %d are taken", p, n, maxEntries)
		}
	}
	full := &raft.AppendEntriesRequest{RPCHeader: headerOf("b"), Entries: []*raft.Log{entry(maxEntry)}}
	if n := len(encoded(t, requestAppend, full)); n > limitOf(requestAppend) {
		t.Errorf("a request with the largest entry has %d bytes, %d are taken", n, limitOf(requestAppend))
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
	const size = fsm.MaxPayload / 2
	for range 5 {
		var calls []fsm.Command
		for range 3 {
			id.Seq++
			calls = append(calls, fsm.Command{ID: id, Body: &fsm.Submit{Jobs: []fsm.JobSpec{{
				Num: id.Seq, Count: 1, MaxAttempts: 1, Need: fsm.Resources{MilliCPU: 1}, Payload: make([]byte, size),
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

// TestVotersKeepTheirShare: large requests in other names take no voter's memory.
func TestVotersKeepTheirShare(t *testing.T) {
	tr := receiving(new(atomic.Int32))
	for _, site := range []string{"x", "y", "x2"} {
		if h := tr.holder(site); h != "" {
			t.Errorf("%s has the share of %q", site, h)
		}
	}
	for tr.held.take(tr.holder("x"), 1<<20) {
	}
	if !tr.held.take(tr.holder("a"), maxEntry) || tr.holder("a") != "a" {
		t.Error("a voter has no share of its own")
	}
	in := &intake{r: bufio.NewReader(bytes.NewReader(make([]byte, 1<<20))), held: &tr.held, holder: func() string { return tr.holder("y") }}
	in.begin(1 << 20)
	if n, err := io.ReadFull(in, make([]byte, freeRequest)); err != nil {
		t.Errorf("a small request: %d bytes, %v", n, err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, errRequest) {
		t.Errorf("beyond the share: %v", err)
	}
	in.release()
	tr.held.give("", maxHeld)
	tr.held.give("a", maxEntry)
	if len(tr.held.of) != 0 {
		t.Errorf("left over: %v", tr.held.of)
	}
}

// TestLongAnswerIsCutOff: a member's answer is bounded, too.
func TestLongAnswerIsCutOff(t *testing.T) {
	near, far := net.Pipe()
	complaints := 0
	conn := &outbound{Conn: near, complain: func(net.Conn, error) { complaints++ }}
	go func() {
		_, _ = far.Read(make([]byte, 1))
		_, _ = far.Write(make([]byte, 2*maxAnswer))
	}()
	if _, err := conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, conn)
	if n != maxAnswer || !errors.Is(err, errRequest) || complaints != 1 {
		t.Errorf("%d bytes, %v, %d complaints", n, err, complaints)
	}
	_, _ = near.Close(), far.Close()
}

// FuzzRaftRequest: whatever comes is an error or a request that can be judged, in the
// memory that its bytes may take.
func FuzzRaftRequest(f *testing.F) {
	for _, b := range hostileBytes(f) {
		f.Add(b[:min(len(b), 4<<10)])
	}
	f.Add(encoded(f, requestAppend, &raft.AppendEntriesRequest{RPCHeader: headerOf("b"), Term: 7, Entries: []*raft.Log{{Index: 1, Term: 1, AppendedAt: time.Unix(1, 2)}}}))
	f.Add(encoded(f, requestTimeout, &raft.TimeoutNowRequest{RPCHeader: headerOf("b")}))
	f.Add(encoded(f, requestPreVote, &raft.RequestPreVoteRequest{RPCHeader: headerOf("b"), Term: 7}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		in := &intake{r: bufio.NewReader(bytes.NewReader(b[1:])), held: &held{}, holder: func() string { return "" }}
		command, err := decodeRequest(codec.NewDecoder(in, msgpack()), in, b[0])
		in.release()
		if err != nil {
			return
		}
		if c, ok := command.(*raft.AppendEntriesRequest); ok && len(c.Entries) > maxEntries {
			t.Errorf("%d entries", len(c.Entries))
		}
		_ = identify(command, "b")
		_ = new(transport).judge(racing{state: raft.Follower}, command)
	})
}
