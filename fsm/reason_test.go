package fsm

import (
	"bytes"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// reasons returns those of all tasks of a's first job, which must be in the state.
func (w *world) reasons(state TaskState) []string {
	w.t.Helper()
	tasks, _ := w.s.Tasks(command.JobID{Site: "a", Num: 1}, 0, 1000)
	var out []string
	for i := range tasks {
		if tasks[i].State != state {
			w.t.Fatalf("task %d is %s, want %s", i, tasks[i].State, state)
		}
		out = append(out, tasks[i].Reason)
	}
	return out
}

func (w *world) wantReasons(state TaskState, why string) {
	w.t.Helper()
	for i, r := range w.reasons(state) {
		if r != why {
			w.t.Fatalf("task %d is %s because %q, want %q", i, state, r, why)
		}
	}
}

// threeKinds makes a job of a with a task that runs, one that returned to the queue, and one that was never
// assigned.
func threeKinds(t *testing.T) *world {
	w := newWorld(t, params(), "a", "b")
	w.must("a", w.offering("a", 1))
	w.must("b", w.offering("b", 1))
	w.submit("a", w.job("a", 3))
	got := w.s.Assignments("b")
	w.must("b", &command.Decline{
		Attempts: []command.AttemptRef{got[0].AttemptRef}, Reason: "busy", Offer: &command.Offer{Version: 2},
	})
	if c, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); c.Counts[Queued] != 2 || c.Counts[Assigned] != 1 {
		t.Fatalf("counts %v", c.Counts)
	}
	return w
}

func TestEveryLostTaskHasAReason(t *testing.T) {
	w := threeKinds(t)
	w.must("a", &command.Leave{})
	w.wantReasons(Withdrawn, "its owner a is away")
	w.must("b", &command.Forget{Site: "a"})
	w.wantReasons(TaskLost, "owner left the federation")
}

func TestEveryCancelledTaskHasAReason(t *testing.T) {
	w := threeKinds(t)
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Stopped, 5)}})
	w.wantReasons(TaskCancelled, CancelledAt("a"))
}

// Found by use: a job that another site's user had cancelled was reported as cancelled by its owner. Each end says
// at which site the cancel was requested.
func TestACancelSaysWhereItWasAsked(t *testing.T) {
	for at, want := range map[string]string{"": "cancelled at a", "b": "cancelled at b", "nobody": "cancelled at a"} {
		w := threeKinds(t)
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1, At: at})
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1}) // the first counts
		w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Stopped, 5)}})
		w.wantReasons(TaskCancelled, want)
		if j, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); j.Reason != want {
			t.Errorf("asked at %q the job was %q", at, j.Reason)
		}
		w.check()
		again, err := Restore(bytes.NewReader(snapshotOf(t, w.s)))
		if err != nil || again.Hash() != w.s.Hash() {
			t.Fatalf("restored: %v", err)
		}
		w.s = again
		w.wantReasons(TaskCancelled, want)
	}
}

// TestACancelledTaskSaysWhereItWasAsked: single tasks, and those of a job too large for records.
func TestACancelledTaskSaysWhereItWasAsked(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	w.submit("a", w.job("a", DetailTasks+1))
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 5, At: "b"})
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1, At: "b"})
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Stopped, 5)}})
	for i, want := range map[uint32]string{0: "cancelled: the record of this end is not kept", 5: "cancelled: the record of this end is not kept", 7: "cancelled at b"} {
		if got, _ := w.s.Tasks(command.JobID{Site: "a", Num: 1}, i, 1); got[0].State != TaskCancelled ||
			got[0].Reason != want {
			t.Errorf("task %d: %s because %q, want %q", i, got[0].State, got[0].Reason, want)
		}
	}
	w.submit("a", w.job("a", 2))
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 2}, Task: 1, At: "b"})
	if got, _ := w.s.Tasks(command.JobID{Site: "a", Num: 2}, 1, 1); got[0].Reason != "cancelled at b" {
		t.Errorf("cancelled by itself: %q", got[0].Reason)
	}
}

// TestASiteSaysWhyItLendsNothing: it does until it says otherwise, leaves, or registers again.
func TestASiteSaysWhyItLendsNothing(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	want := func(c command.Closure) {
		t.Helper()
		if v, _ := w.s.Site("b"); v.Closed != c {
			t.Fatalf("b is closed by %q, want %q", v.Closed, c)
		}
		w.check()
	}
	w.must("b", &command.Close{Why: command.ClosedDrain})
	want(command.ClosedDrain)
	again, err := Restore(bytes.NewReader(snapshotOf(t, w.s)))
	if err != nil || again.Hash() != w.s.Hash() {
		t.Fatalf("restored: %v", err)
	}
	w.s = again
	want(command.ClosedDrain)
	w.must("b", &command.Close{})
	want(command.NotClosed)
	w.must("b", &command.Close{Why: command.ClosedTrouble})
	w.register("b")
	want(command.NotClosed)
	w.must("b", &command.Close{Why: command.ClosedLeaving})
	w.must("b", &command.Leave{})
	want(command.NotClosed)
}

// TestACancelledTaskTellsItsReason: one by one, the job's reason and the events have it, too.
func TestACancelledTaskTellsItsReason(t *testing.T) {
	w := threeKinds(t)
	var events []Event
	w.s.Observe(&events)
	for task := range int64(3) {
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: task})
	}
	w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Stopped, 5)}})
	w.wantReasons(TaskCancelled, CancelledAt("a"))
	if j, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); j.Reason != CancelledAt("a") {
		t.Errorf("the job's reason is %q", j.Reason)
	}
	for i := range events {
		if e := &events[i]; e.Kind == EventTaskEnded && e.Reason != CancelledAt("a") {
			t.Errorf("event %+v has no reason", e)
		}
	}
}

// TestALargeJobsTasksHaveReasons: a job too large for records keeps the reason of tasks that end together, and says
// of a single loss what is not known.
func TestALargeJobsTasksHaveReasons(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	job := w.job("a", DetailTasks+1)
	job.OnLoss = command.Never
	w.submit("a", job)
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Stopped, 5)}})
	w.must("a", &command.Leave{})
	w.must("b", &command.Forget{Site: "a"})
	for i, want := range map[uint32]string{0: "lost by its site, or its owner left: the record of this end is not kept", 7: "owner left the federation"} {
		if got, _ := w.s.Tasks(command.JobID{Site: "a", Num: 1}, i, 1); got[0].State != TaskLost || got[0].Reason != want {
			t.Errorf("task %d: %s because %q, want %q", i, got[0].State, got[0].Reason, want)
		}
	}
}
