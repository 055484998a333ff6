package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// shortOfNumbers is a state that remembers many ranges of a site's numbers.
type shortOfNumbers struct {
	*fsm.State
	used uint64
}

// Quotas implements StateReader.
func (s *shortOfNumbers) Quotas(string) (v fsm.QuotaView, known bool) {
	v.Uses = []fsm.Use{{Quota: command.QuotaNumbers, Used: s.used, Limit: 1000}}
	return v, true
}

// TestOldHeldJobsFreeNumbers: while one job is held no later number is settled, so ranges of numbers grow beside it
// until the state refuses all jobs of the site. Before that the oldest held ones are published, whosever turn it is.
func TestOldHeldJobsFreeNumbers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first, last := a.floodOf("alice", 300, 1)
	held := func() (n int) {
		for num := first.ID.Num; num <= last.ID.Num; num++ {
			if p := a.core.pubs.Find(num); p != nil && p.Held {
				n++
			}
		}
		return n
	}
	before := held()
	if last.Reason != publish.Held || before < 250 {
		t.Fatalf("%d are held, the last: %+v", before, last)
	}
	a.core.publishHeld(&shortOfNumbers{r.state, 750})
	if n := held(); n != before {
		t.Errorf("%d are held, before %d", n, before)
	}
	a.core.publishHeld(&shortOfNumbers{r.state, 751})
	if n := held(); n != before-oldestPerTurn {
		t.Errorf("%d are held, want %d", n, before-oldestPerTurn)
	}
	oldest := a.core.settledBelow()
	a.turn(StateEvent{})
	if r.settle(); a.core.settledBelow() < oldest+oldestPerTurn {
		t.Errorf("numbers below %d are settled, before %d", a.core.settledBelow(), oldest)
	}
	if n := a.usersTasks("alice"); n != 300 {
		t.Errorf("alice has %d tasks", n)
	}
}
