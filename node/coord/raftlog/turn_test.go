package raftlog

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

func TestTurnsGoByName(t *testing.T) {
	voters := []voterDisk{{id: "d"}, {id: "a"}, {id: "c"}}
	for site, want := range map[string][3]raft.ServerID{
		"b": {"c", "d", "a"}, "aa": {"c", "d", "a"}, "z": {"a", "c", "d"}, "0": {"a", "c", "d"},
	} {
		order := inTurn(voters, site)
		if got := [3]raft.ServerID{order[0].id, order[1].id, order[2].id}; got != want {
			t.Errorf("after %s come %v, want %v", site, got, want)
		}
	}
}

// TestLeadersTakeTurns: every voter leads in its turn, and those that led before go on.
func TestLeadersTakeTurns(t *testing.T) {
	c := newCluster(t)
	c.time.turn = time.Second
	// Nothing but turns moves the leadership: no member misses a heartbeat because the machine is busy.
	c.time.heartbeat, c.time.election, c.time.lease = 2*time.Second, 2*time.Second, time.Second
	reasons := make(chan string, 64)
	c.hooks.HandOver = func(reason string) { reasons <- reason }
	for _, site := range []string{"a", "b", "c"} {
		c.Open(t, site, coordtest.NewMachine())
	}
	next := map[string]string{"a": "b", "b": "c", "c": "a"}
	led := c.leader(t)
	for range 4 {
		if why := <-reasons; why != string(reasonTurn) {
			t.Fatalf("handed over for %s", why)
		}
		was := led
		await(t, "another leader", func() bool { led = c.leader(t); return led != was })
		if led.cfg.Site != next[was.cfg.Site] {
			t.Errorf("%s leads after %s", led.cfg.Site, was.cfg.Site)
		}
		if _, err := was.Propose(patience(t), coordtest.Registration(was.cfg.Site)); err != nil {
			t.Errorf("who led before proposes: %v", err)
		}
	}
}
