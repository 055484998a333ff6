//go:build zookeeper

package zk

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// leaders are those that have led, in order.
type leaders struct {
	mu    sync.Mutex
	sites []string
}

func (x *leaders) add(site string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sites = append(x.sites, site)
}

// has reports whether some have led, in this order, though others may have between them.
func (x *leaders) has(sites ...string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, site := range x.sites {
		if len(sites) > 0 && sites[0] == site {
			sites = sites[1:]
		}
	}
	return len(sites) == 0
}

// TestLeadersTakeTurns: every voter leads in its turn, and what all say meanwhile is executed once.
func TestLeadersTakeTurns(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.turn = 300 * time.Millisecond
	var led leaders
	c.hooks.Lead = led.add
	all := c.open(t, "a")
	c.hooks.Lead = nil // what one member sees is enough
	all = append(all, c.open(t, "b", "cc")...)
	talk(t, all, func() {
		await(t, "all have led, and the first one again", func() bool { return led.has("a", "b", "cc", "a") })
	})
	if turns := c.logs["b"].Figures().HandOvers["turn"]; turns == 0 {
		t.Error("b has handed over for no turn")
	}
}

// TestTurnsGoByName: fit voters follow each other by their names, and each leaves those before it a moment.
func TestTurnsGoByName(t *testing.T) {
	l := &Log{cfg: Config{Config: facade.Config{Site: "c", Machine: coordtest.NewMachine()}}, kick: make(chan struct{}, 1)}
	all := []string{"a", "b", "c", "d"}
	l.group.set(tree.LeadRecord{}, 0, all, all, []string{"a", "c", "d"}, []string{"d"}, nil)
	for site, want := range map[string][]string{"a": {"c"}, "b": {"c", "a"}, "c": {"a"}, "d": {"a", "c"}, "0": {"a", "c"}} {
		if got := l.inTurn(site); !slices.Equal(got, want) {
			t.Errorf("behind %s comes %v, not %v", site, got, want)
		}
	}
	for last, waits := range map[string]bool{"": false, "a": false, "b": false, "d": true} {
		l.turns = turns{}
		l.noteLeader(last, true)
		l.noteLeader("", false)
		if got := l.awaitsTurn(); got != waits {
			t.Errorf("behind %s it waits: %v", last, got)
		}
	}
}
