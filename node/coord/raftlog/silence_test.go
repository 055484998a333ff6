package raftlog

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// To have raft look for its leader deposes none that is heard of, and changes no timeout.
func TestLooksDeposeNoLeader(t *testing.T) {
	c := newCluster(t)
	c.time.heartbeat, c.time.election, c.time.lease = 3*time.Second, 3*time.Second, 3*time.Second
	first := c.open(t, "a")
	lead := c.leader(t)
	c.open(t, "b")
	c.open(t, "cc")
	await(t, "three voters", func() bool { return len(first.voters()) == 3 })
	await(t, "timeouts of voters at all of them", func() bool {
		return !slices.ContainsFunc(c.running(), func(l *Log) bool {
			return l.raft.ReloadableConfig().HeartbeatTimeout != c.time.heartbeat
		})
	})
	term := lead.raft.CurrentTerm()
	for range 100 {
		for _, l := range c.running() {
			before := l.raft.ReloadableConfig()
			l.lookAtSilence()
			if now := l.raft.ReloadableConfig(); now != before {
				t.Fatalf("timeouts %+v, were %+v", now, before)
			}
		}
	}
	register(t, lead)
	for _, l := range c.running() {
		if now := l.raft.CurrentTerm(); now != term {
			t.Errorf("term %d at %s, was %d", now, l.cfg.Site, term)
		}
	}
}

// A follower that is not fit keeps its longer patience, and one that leads has none.
func TestSilencePatience(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	if lead := c.leader(t); lead.silenceLeft(time.Nanosecond) == 0 {
		t.Error("a leader waits for its own heartbeat")
	}
	follower := c.open(t, "b")
	await(t, "a follower", func() bool { return follower.raft.State() == raft.Follower && !follower.lonely() })
	follower.SetUnfit("for a test")
	await(t, "a longer patience", func() bool { return follower.silencePatience() >= unfitTimeoutFactor*c.time.heartbeat })
	if left := follower.silenceLeft(time.Hour); left == 0 || left > time.Hour {
		t.Errorf("%s of an hour is left", left)
	}
}
