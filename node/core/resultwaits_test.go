package core

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
)

// waitingResult is a home task that has ended, and whose result waits for room.
func waitingResult(t *testing.T, r *rig) (got CollectedEvent) {
	t.Helper()
	a := r.sites[0]
	a.submit(strings.Replace(bothJob, oneInput+",", "", 1), "")
	r.late = func(_ *rigSite, ev Event) { got = ev.(CollectedEvent) }
	a.finish(a.only(), 0)
	r.late = nil
	a.turn(CollectWaitsEvent{got.ID})
	return got
}

// TestResultThatWaitsForRoom: its task is not run again, others have its machine meanwhile, once, and it succeeds when
// there is room.
func TestResultThatWaitsForRoom(t *testing.T) {
	r := filesRig(t, 1)
	a := r.sites[0]
	got := waitingResult(t, r)
	a.submit(sleepJob, "")
	id := a.only() // has its core
	a.turn(CollectWaitsEvent{got.ID})
	a.submit(sleepJob, "")
	a.only()
	if job, _ := a.core.own.Job(1); job.State != fsm.Running.String() {
		t.Errorf("it is %s", job.State)
	}
	a.turn(got)
	if job, _ := a.core.own.Job(1); job.State != fsm.TaskSucceeded.String() {
		t.Errorf("it is %s", job.State)
	}
	a.finish(id, 0)
	r.settle()
	id = a.only() // one core, one task: nothing was given back twice
	a.finish(id, 0)
	r.settle()
	if len(a.running) != 0 || a.core.attempts.Len() != 0 {
		t.Errorf("%v runs, %d attempts are left", a.running, a.core.attempts.Len())
	}
}

// TestCancelledWhileItsResultWaits: that ends at once, and the task is cancelled, not succeeded, lost or run again.
func TestCancelledWhileItsResultWaits(t *testing.T) {
	r := filesRig(t, 1)
	a := r.sites[0]
	got := waitingResult(t, r)
	a.stops = nil
	a.turn(CancelEvent{Num: 1, Reply: func(error) {}})
	a.ticks(3)
	if len(a.stops) != 1 || a.stops[0] != got.ID {
		t.Fatalf("stops %v", a.stops)
	}
	got.Ended = true
	a.turn(got)
	if job, _ := a.core.own.Job(1); job.State != fsm.TaskCancelled.String() || len(a.running) != 0 {
		t.Errorf("it is %s, %v runs", job.State, a.running)
	}
}
