package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

func TestDrainedSiteTakesNothingOn(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.turn(DrainEvent{Drain{On: true}, func() {}})
	r.settle()
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	b.submit(sleepJob, "")
	r.settle()
	if id := b.only(); id.Job != "b.1" {
		t.Errorf("a drained site runs %s, want only its own users' work", id)
	}
	b.finish(b.only(), 0)
	b.turn(DrainEvent{Drain{On: true, Own: true}, func() {}})
	b.boot() // the wish survives
	r.settle()
	b.submit(sleepJob, "")
	r.settle()
	if len(b.running) != 0 {
		t.Errorf("a wholly drained site runs %s", b.only())
	}
	b.turn(DrainEvent{Drain{}, func() {}})
	r.settle()
	if len(b.running) != 1 {
		t.Error("after resume nothing runs")
	}
}
