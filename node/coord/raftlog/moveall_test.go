//go:build !race

package raftlog

// These tests run without the race detector (make test runs them apart): it reports
// hashicorp/raft v1.8.0 itself, where updateLastAppended reads a peer's ID without the
// lock under which startStopReplication writes the peer when its address changes. Both
// are the same name, so nothing comes of it.

import (
	"testing"
)

// moveAll stops three voters, starts them at other addresses, and waits until the
// group has those.
func moveAll(t *testing.T, addr func(c *cluster, site string) string) {
	c := newCluster(t)
	sites := []string{"a", "b", "cc"}
	for _, s := range sites {
		c.open(t, s)
	}
	c.voters(t, sites...)
	register(t, c.logs["a"])
	told := &gossip{addr: map[string]string{}}
	to := map[string]string{}
	for _, s := range sites {
		to[s] = addr(c, s)
	}
	for _, s := range sites {
		if err := c.logs[s].Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sites {
		l := c.reopen(t, s, func(cfg *Config) { cfg.Listen, cfg.Known = to[s], told.known })
		told.tell(s, l.Addr())
	}
	register(t, c.logs["b"])
	for _, s := range sites {
		await(t, s+" is told of", func() bool { return c.leader(t).configuredPeer(s).Addr == c.logs[s].Addr() })
		heard(t, c.logs[s])
	}
}

// TestAllMoveTogether: all voters change their addresses at once; they find each
// other by what gossip tells, and the group has the new ones in the end.
func TestAllMoveTogether(t *testing.T) {
	moveAll(t, func(*cluster, string) string { return "127.0.0.1:0" })
}

// TestAddressesGoRound: each takes the address that another one had.
func TestAddressesGoRound(t *testing.T) {
	next := map[string]string{"a": "b", "b": "cc", "cc": "a"}
	moveAll(t, func(c *cluster, site string) string { return c.logs[next[site]].Addr() })
}
