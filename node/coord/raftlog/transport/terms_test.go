package transport

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hashicorp/raft"
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
		{"another jump in time", 5001, 5001 + MaxAhead, false, time.Hour, false},
		{"too far", 7, 8 + MaxAhead, false, time.Hour, true},
		{"too far, without a log", 0, 8 + MaxAhead, true, time.Hour, false},
		{"the greatest, without a log", 0, MaxTerm + 1, true, time.Hour, true},
		{"beyond the greatest", MaxTerm, MaxTerm + 1, false, time.Hour, true},
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
		"vote":     &raft.RequestVoteRequest{RPCHeader: by("x"), Term: 7 + MaxAhead},
		"pre-vote": &raft.RequestPreVoteRequest{RPCHeader: by("x"), Term: 7 + MaxAhead},
		"append":   &raft.AppendEntriesRequest{RPCHeader: by("b"), Term: 7 + MaxAhead, Entries: []*raft.Log{nil}},
		"snapshot": &raft.InstallSnapshotRequest{RPCHeader: by("b"), Term: 7 + MaxAhead},
	} {
		tr := &Transport{}
		if err := tr.checkRequest(still{}, q); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", what, err)
		}
		tr.terms.begun = time.Time{} // a moment later
		if err := tr.checkRequest(still{}, &raft.AppendEntriesRequest{RPCHeader: by("b"), Term: ahead}); err != nil {
			t.Errorf("a member behind the %s: %v", what, err)
		}
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
	l := termLeader{silence: time.Second, quiet: 4 * time.Second}
	now := time.Unix(1000, 0)
	follower := racing{state: raft.Follower}
	for _, c := range []struct {
		id   raft.ServerID
		term uint64
		ok   bool
	}{
		{"a", term - 1, true},
		{"b", term, true},
		{"b", term, true},
		{"a", term, false},
		{"a", term - 1, true},
		{"b", term, true},
		{"c", term + 1, true},
	} {
		err := l.check(follower, c.id, c.term, now, true)
		if (err == nil) != c.ok {
			t.Errorf("%s as the leader of term %d: %v", c.id, c.term, err)
		}
		if err == nil {
			l.record(follower, c.id, c.term, now)
		}
	}
	if err := l.check(follower, "b", term+1, now.Add(l.silence), true); err != nil {
		t.Errorf("another one, where the first is silent: %v", err)
	}
	for after, ok := range map[time.Duration]bool{l.silence: false, l.quiet: true} {
		if err := l.check(follower, "b", term+1, now.Add(after), false); (err == nil) != ok {
			t.Errorf("another one to a member that does not vote, where the first is silent for %s: %v", after, err)
		}
	}
	if new(termLeader).check(racing{state: raft.Leader}, "b", term, now, true) == nil {
		t.Error("a leader follows another one of its own term")
	}
}
