package raftlog

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// TestStopWaitsForNoQuorumThatStops: of members that stop at once, one led on: it could hand the leadership to none of
// the others, and waited for its entry in flight until raft noticed that there was no majority.
func TestStopWaitsForNoQuorumThatStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// Raft notices late, and entries in flight may take long.
	c.time.heartbeat, c.time.election, c.time.lease = 3*time.Second, 3*time.Second, 3*time.Second
	c.time.drain, c.time.unheard = time.Minute, time.Millisecond
	for _, site := range []string{"a", "b", "c"} {
		c.Open(t, site, coordtest.NewMachine())
	}
	lead := c.leader(t)
	for _, l := range c.running() {
		if l != lead {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(t, "an idle entry in flight", func() bool { return lead.raft.LastIndex() > lead.raft.CommitIndex() })
	states := make(chan raft.Observation, 64)
	lead.raft.RegisterObserver(raft.NewObserver(states, false, func(o *raft.Observation) bool {
		_, isState := o.Data.(raft.RaftState)
		return isState
	}))
	if err := lead.Close(); err != nil {
		t.Fatal(err)
	}
	close(states)
	for o := range states {
		if o.Data == raft.Follower {
			t.Error("it stopped only when raft had noticed that there is no majority")
		}
	}
}
