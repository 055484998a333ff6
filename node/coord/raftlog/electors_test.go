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
