package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// TestASuspectedSiteStopsWhatAnotherTook: an immediate task of a goes on at b while it
// waits for another site, and is stopped there as soon as c has it.
func TestASuspectedSiteStopsWhatAnotherTook(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1, 1)
	a, b, c := r.sites[0], r.sites[1], r.sites[2]
	a.submit(sleepJob, "") // keeps a busy
	c.submit(sleepJob, "") // and c
	busy := c.only()
	a.submit(`{"command":["true"],"retry":{"on_loss":"immediate"}}`, "")
	r.settle()
	old := b.only()
	judge := func(v Verdicts) {
		v.Term = 1
		a.turn(VerdictEvent{v})
		r.settle()
	}
	hint := []coord.Renewal{{Site: "b", Incarnation: 1}}
	judge(Verdicts{Suspect: hint})
	judge(Verdicts{Trust: hint})
	if len(b.stops) != 0 || b.only() != old {
		t.Fatalf("b stops %v for a hint that was taken back", b.stops)
	}
	judge(Verdicts{Suspect: hint})
	c.finish(busy, 0)
	c.ticks(usageTicks) // it offers its core
	r.settle()
	if id := c.only(); id.Attempt != 2 || id.Job != old.Job {
		t.Fatalf("c runs %s", id)
	}
	if len(b.stops) != 1 || b.stops[0] != old {
		t.Errorf("b stops %v, want %s", b.stops, old)
	}
}
