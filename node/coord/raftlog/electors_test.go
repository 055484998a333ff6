package raftlog

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// decisions are what the members have decided about each other.
type decisions struct {
	mu       sync.Mutex
	voteless map[string]bool
	expelled map[string]bool
}

func (d *decisions) set(in map[string]bool, site string, to bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in[site] = to
}

func (d *decisions) is(in map[string]bool, site string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return in[site]
}

// electing is a machine that knows them.
type electing struct {
	*coordtest.Machine

	by *decisions
}

var _ coord.Electoral = electing{}

// MayVote implements coord.Electoral.
func (e electing) MayVote(site string) bool { return !e.by.is(e.by.voteless, site) }

// Expelled implements coord.Electoral.
func (e electing) Expelled(site string) bool { return e.by.is(e.by.expelled, site) }

// TestOnlyElectorsVote: who has no vote follows, who loses it is demoted, and whom the members have expelled leaves
// the group, though its broker does nothing about it.
func TestOnlyElectorsVote(t *testing.T) {
	c := newSecured(t)
	by := &decisions{voteless: map[string]bool{"d": true, "e": true}, expelled: map[string]bool{}}
	for _, site := range []string{"a", "b", "cc", "d", "e"} {
		c.Open(t, site, electing{coordtest.NewMachine(), by})
	}
	<-time.After(5 * c.time.stable) // several looks at a stable d and e
	c.voters(t, "a", "b", "cc")
	by.set(by.voteless, "d", false)
	by.set(by.voteless, "e", false)
	c.voters(t, "a", "b", "cc", "d", "e")
	by.set(by.voteless, "d", true)
	c.voters(t, "a", "b", "cc", "e")
	by.set(by.expelled, "e", true)
	c.voters(t, "a", "b", "cc")
	for ctx := patience(t); slices.Contains(c.leader(t).Status().Members, "e"); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("e is still in the group")
		}
	}
	register(t, c.leader(t))
}

// TestVotelessWordOnTheEpoch: found by an attack: a member without a vote said that the federation was recovered into a
// later epoch, and the leader that had asked it stopped, then the next one.
func TestVotelessWordOnTheEpoch(t *testing.T) {
	c := newCluster(t)
	c.time.epochCheck = 50 * time.Millisecond
	by := &decisions{voteless: map[string]bool{"c": true}, expelled: map[string]bool{}}
	machine := func() coord.Machine { return electing{coordtest.NewMachine(), by} }
	all := []*Log{c.Open(t, "a", machine()).(*Log), c.Open(t, "b", machine()).(*Log)}
	lost, err := Open(patience(t), c.config("c", machine()))
	if err != nil {
		t.Fatal(err)
	}
	c.net.Join("c", lost.Addr())
	for _, l := range append(all, lost) {
		register(t, l)
	}
	closed(t, lost)
	c.Cut("c")
	if err := Recover(patience(t), c.offline("c", ""), 0); err != nil {
		t.Fatal(err)
	}
	again, err := Open(patience(t), c.config("c", machine()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	c.Heal("c")
	<-time.After(10 * c.time.epochCheck) // it is asked several times
	for _, l := range all {
		if _, err := l.Sync(patience(t)); err != nil || l.Err() != nil {
			t.Errorf("%s: %v, %v", l.cfg.Site, err, l.Err())
		}
	}
	by.set(by.voteless, "c", false)
	fails(t, c.leader(t), ErrEpoch, "epoch 1") // the word of one that may vote counts
}
