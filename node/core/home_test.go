package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
)

// resize gives the site's machine so many cores.
func (s *rigSite) resize(cores int64) {
	s.cores = cores
	s.turn(CapacityEvent{"local", []executor.Machine{s.machine()}})
}

// Every turn of the broker tried all home tasks again that no machine could take.
func TestStuckHomeTasksCostNothing(t *testing.T) {
	const count = 100
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	a.reopen() // alone
	a.submit(`{"command":["sleep"],"resources":{"cpu":2},"count":100,"retry":{"max_attempts":9}}`, "")
	wide := a.core.home.Find(1)
	a.resize(1)
	a.finish(a.only(), 1)
	if task := wide.Tasks[count-1]; task.State != fsm.Queued || task.Reason != homejobs.TooSmall {
		t.Fatalf("the last task: %+v", task)
	}
	wide.Sum()
	a.turn(StateEvent{})
	looks := a.core.home.Start(true, r.state, &Effects{})
	if _, steps := wide.Sum(); looks+steps != 0 {
		t.Errorf("looked at %d tasks, and at %d for the sum", looks, steps)
	}
	a.submit(sleepJob, "") // what comes later is tried, behind them
	if id := a.only(); id.Job != "a.2" {
		t.Errorf("%s runs, want a.2", id)
	}
	a.finish(a.only(), 0)
	a.resize(2) // they are tried again, in order
	if id := a.only(); id.Job != "a.1" || id.Task != 1 {
		t.Errorf("%s runs, want task 1 of a.1", id)
	}
}

// What is passed over can be cancelled, and then keeps nobody from starting.
func TestCancelledStuckHomeTasksAreForgotten(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	a.reopen() // alone
	a.submit(`{"command":["sleep"],"resources":{"cpu":2},"count":3,"retry":{"max_attempts":9}}`, "")
	a.resize(1)
	a.finish(a.only(), 1)
	a.turn(CancelEvent{Num: 1, Reply: func(err error) {
		if err != nil {
			t.Error(err)
		}
	}})
	if n := a.core.home.Waiting(); n != 0 || !a.core.home.Find(1).Ended() {
		t.Errorf("%d tasks wait, ended: %t", n, a.core.home.Find(1).Ended())
	}
}

// What is passed over and was never begun goes to the federation all the same.
func TestStuckHomeTasksArePublished(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 2)
	a, b := r.sites[0], r.sites[1]
	held, lost := a.reopen()
	a.submit(`{"command":["sleep"],"retry":{"max_attempts":2}}`, "")
	a.submit(`{"command":["sleep"],"resources":{"cpu":2}}`, "") // waits
	a.resize(1)
	if n := a.core.home.Waiting(); n != 1 {
		t.Fatalf("%d tasks wait", n)
	}
	a.register(held, lost)
	a.lease(time.Hour)
	r.settle()
	if id := b.only(); id.Job != "a.2" {
		t.Errorf("%s runs at b, want a.2", id)
	}
	if n := a.core.home.Waiting(); n != 0 {
		t.Errorf("%d tasks wait at home", n)
	}
}
