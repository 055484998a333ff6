package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// configured is raft with a configuration.
type configured struct {
	racing

	servers []raft.Server
}

func (c configured) GetConfiguration() raft.ConfigurationFuture { return newest(c.servers) }

// newest is a configuration.
type newest []raft.Server

func (newest) Error() error  { return nil }
func (newest) Index() uint64 { return 0 }
func (n newest) Configuration() raft.Configuration {
	return raft.Configuration{Servers: n}
}

// What would tell a member that does not vote nothing new is not sent to it; a voter is sent everything, and so is a
// member that has been silent for a while, has not answered in this term, or has just begun to vote. An answer made
// here shares nothing with the request: raft decodes the next one into it, and sent heartbeats in a follower's name.
func TestWhatTellsNothingIsSpared(t *testing.T) {
	s := NewStream(ServerAddress("a", "127.0.0.1:1"), nil, nil, func(string) relay.Peer { return relay.Peer{} })
	s.Begin()
	quiet := Quiet{For: time.Hour, Silence: 2 * time.Hour}
	tr := New(s, "a", time.Second, time.Second, quiet, hclog.NewNullLogger())
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		tr.Wait()
	}()
	const term = 7
	members := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "n", Suffrage: raft.Nonvoter}}
	tr.Attach(configured{servers: members})
	at := raft.AppendEntriesRequest{Term: term, PrevLogEntry: 5, PrevLogTerm: term, LeaderCommitIndex: 5}
	for _, id := range []raft.ServerID{"b", "n"} {
		tr.answered(id, "127.0.0.1:1", &at, &raft.AppendEntriesResponse{Term: term, Success: true}, 0)
		tr.measured(id, time.Millisecond)
	}
	heartbeat := raft.AppendEntriesRequest{RPCHeader: tr.self, Term: term}
	later, further, committed, entry := heartbeat, at, at, at
	later.Term, further.PrevLogEntry, committed.LeaderCommitIndex = term+1, 6, 6
	entry.Entries = []*raft.Log{{Index: 6, Term: term}}
	check := func(what string, id raft.ServerID, r raft.AppendEntriesRequest, want bool) {
		t.Helper()
		var resp raft.AppendEntriesResponse
		got := tr.spared(id, &r, &resp)
		if got != want {
			t.Errorf("%s to %s: spared %v", what, id, got)
		}
		if got && (!resp.Success || resp.Term != term || resp.LastLog != 5) || resp.ID != nil || resp.Addr != nil {
			t.Errorf("%s to %s: answered %+v", what, id, resp)
		}
	}
	check("a heartbeat", "n", heartbeat, true)
	check("what it has", "n", at, true)
	check("a commit of what it has not", "n", committed, true)
	check("a heartbeat", "b", heartbeat, false)
	check("what it has", "b", at, false)
	check("a heartbeat", "x", heartbeat, false)
	check("a heartbeat of another term", "n", later, false)
	check("the place of an entry that it has not", "n", further, false)
	check("an entry", "n", entry, false)

	tr.SetMuted(true)
	check("a heartbeat of a silent leader", "n", heartbeat, false)
	tr.SetMuted(false)
	tr.peers["n"].commits.told = 4
	check("a commit that it has not heard of", "n", at, false)
	check("a heartbeat meanwhile", "n", heartbeat, true)
	tr.peers["n"].at = time.Now().Add(-time.Hour)
	check("a heartbeat after a while", "n", heartbeat, false)
	tr.peers["n"].at = time.Now()

	promoted := append([]raft.Server(nil), members...)
	promoted[2].Suffrage = raft.Voter
	tr.Attach(configured{servers: promoted})
	check("a heartbeat to a new voter", "n", heartbeat, false)
}

// TestPipesSpareToo: what would tell a member that does not vote nothing new is not sent by a pipe either, and raft's
// reader is told of no answer to it.
func TestPipesSpareToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done := far(follower)
		lead.quiet.For = time.Hour
		lead.Attach(configured{racing{state: raft.Leader}, []raft.Server{{ID: "a"}, {ID: "b", Suffrage: raft.Nonvoter}}})
		if _, err := p.AppendEntries(appendOf(lead, 1, 1, 1), new(raft.AppendEntriesResponse)); err != nil {
			t.Fatal(err)
		}
		if f := <-p.Consumer(); lastOf(f.Request()) != 1 {
			t.Errorf("answer to entry %d", lastOf(f.Request()))
		}
		nothing := appendOf(lead, 2, 1, 1)
		f, err := p.AppendEntries(nothing, new(raft.AppendEntriesResponse))
		if err != nil || f.Error() != nil || !f.Response().Success || p.inFlight() != 0 {
			t.Errorf("%v, %v; %d in flight", err, f.Error(), p.inFlight())
		}
		select {
		case f := <-p.Consumer():
			t.Errorf("raft is told %+v", f.Response())
		case <-time.After(2 * roundTrip):
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestQuietMembersAreMeasured: entries alone, of which one is ordered every second, kept all heartbeats from a member
// that does not vote, so that it was never found to be far and had no pipe.
func TestQuietMembersAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{quiet: Quiet{For: 2 * time.Second, Silence: 4 * time.Second}}
		tr := m.open(t, "a", time.Second)
		tr.Attach(configured{servers: []raft.Server{{ID: "a"}, {ID: "n", Suffrage: raft.Nonvoter}}})
		heartbeat := raft.AppendEntriesRequest{RPCHeader: tr.self, Term: leaderTerm}
		measured := 0
		for i := range uint64(600) { // a minute: a heartbeat each 100 ms, an entry each second
			if i%10 == 0 {
				said := &raft.AppendEntriesResponse{Term: leaderTerm, Success: true}
				tr.answered("n", "n", appendOf(tr, i+1, i+1, i), said, 0)
			}
			if !tr.spared("n", &heartbeat, new(raft.AppendEntriesResponse)) {
				tr.measure("n", &heartbeat, new(raft.AppendEntriesResponse), time.Now().Add(-roundTrip), time.Time{})
				measured++
			}
			if i == leastTrips && !tr.progressOf("n").way.isFar() {
				t.Error("it is not far after some heartbeats")
			}
			<-time.After(100 * time.Millisecond)
		}
		if measured != leastTrips+2 { // one each 20 s afterwards
			t.Errorf("%d heartbeats in a minute", measured)
		}
		m.close(tr)
	})
}
