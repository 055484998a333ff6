package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Found by use: what another site's user cancelled was told to be cancelled by its owner.
func TestACancelNamesTheSiteThatWasAsked(t *testing.T) {
	for at, want := range map[string]string{"": "cancelled at a", "b": "cancelled at b"} {
		r := newRig(t, command.DefaultParams(), 1, 1)
		a := r.sites[0]
		for range 3 { // one at home, one at b, one that waits
			a.submit(sleepJob, "")
			r.settle()
		}
		for num := range uint64(3) {
			a.turn(CancelEvent{Num: num + 1, At: at, Reply: func(err error) {
				if err != nil {
					t.Error(err)
				}
			}})
			r.settle()
		}
		if home := a.core.home.Find(1).Tasks[0]; home.Reason != want {
			t.Errorf("asked at %q: at home %q", at, home.Reason)
		}
		for _, id := range []string{"a.2", "a.3"} {
			tasks, _ := r.state.Tasks(r.job(id).ID, 0, 1)
			if tasks[0].Reason != want {
				t.Errorf("asked at %q: %s %s, %q", at, id, tasks[0].State, tasks[0].Reason)
			}
		}
	}
}

// Found by use: nobody but its own broker knew why a site lends nothing.
func TestASitesClosureIsTold(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	b := r.sites[1]
	closed := func() command.Closure {
		r.settle()
		v, _ := r.state.Site("b")
		return v.Closed
	}
	b.turn(DrainEvent{Drain{On: true}, func() {}})
	if c := closed(); c != command.ClosedDrain {
		t.Errorf("drained, and told %q", c)
	}
	b.boot()
	if c := closed(); c != command.ClosedDrain {
		t.Errorf("after a restart: %q", c)
	}
	b.turn(DrainEvent{Drain{}, func() {}})
	if c := closed(); c != command.NotClosed {
		t.Errorf("resumed, and told %q", c)
	}
}

// Found by use: a task said "stopped: cancelled at b" and its job "cancelled at b".
func TestAReasonHasOneWording(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	run := b.only()
	a.turn(CancelEvent{Num: 2, At: "b", Reply: func(error) {}})
	r.settle()
	b.turn(EndedEvent{run, executor.Result{Cause: executor.Stopped, Detail: "stopped: cancelled at b"}})
	r.settle()
	if tasks, _ := r.state.Tasks(r.job("a.2").ID, 0, 1); tasks[0].Reason != "cancelled at b" || tasks[0].State != fsm.TaskCancelled {
		t.Errorf("%s: %q", tasks[0].State, tasks[0].Reason)
	}
}
