package raftlog

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
)

// TestFarBehindIsSetAside: a voter that missed more elections than any stay away
// explains believes nobody, says so with the remedy, and disturbs nobody; the remedy
// of the guide brings the machine back under a new name.
func TestFarBehindIsSetAside(t *testing.T) {
	c := newCluster(t)
	var logs []*Log
	for _, site := range []string{"a", "b", "c"} {
		logs = append(logs, c.open(t, site))
		register(t, logs[len(logs)-1])
	}
	closed(t, logs...)
	for _, l := range logs[:2] { // as if they had elected each other for weeks
		s, err := store.Open(l.cfg.Dir)
		if err == nil {
			err = errors.Join(s.SetUint64(keyCurrentTerm, 2*transport.MaxAhead), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, _ := c.reopen(t, "a", func(*Config) {}), c.reopen(t, "b", func(*Config) {})
	out := &lines{}
	behind := c.reopen(t, "c", func(cfg *Config) { cfg.Logger = zerolog.New(out) })
	await(t, "the line with the remedy", func() bool {
		return out.count("set this broker's data directory aside and come back on an empty one") > 0
	})
	term := c.leader(t).raft.CurrentTerm()
	if _, err := a.Sync(patience(t)); err != nil || behind.Status().CaughtUp ||
		behind.raft.CurrentTerm() > transport.MaxAhead {
		t.Errorf("c is in term %d of %d, %v", behind.raft.CurrentTerm(), term, err)
	}
	closed(t, behind)
	d := c.Open(t, "d", coordtest.NewMachine()).(*Log)
	register(t, d)
	heard(t, d)
	if err := c.leader(t).Remove(patience(t), "c"); err != nil {
		t.Fatal(err)
	}
	await(t, "d votes in place of c", func() bool { return len(a.Status().Voters) == 3 })
}
