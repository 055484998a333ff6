package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// lostBehindWork makes a run two tasks of its own and be lost, and then leaves the loss of b, which runs fifty, as
// work: what comes now is acted on after that.
func lostBehindWork(t *testing.T, boundMs int64) (*world, []Assignment) {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.submit("c", w.job("c", 50))
	w.must("b", w.offering("b", 50))
	j := w.job("a", 2)
	j.Only = []string{"a"}
	w.submit("a", j)
	w.must("a", w.offering("a", 2))
	own := w.s.Assignments("a")
	if len(own) != 2 {
		t.Fatalf("a was assigned %d", len(own))
	}
	if boundMs > 0 {
		w.must("a", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: own[0].AttemptRef, BoundMs: boundMs}}})
	}
	w.must("c", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term})
	w.step(w.cmd("c", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term}))
	return w, own
}

// step applies an entry that does one step of what is left. A replica can be restored after it.
func (w *world) step(cmds ...command.Command) {
	w.t.Helper()
	w.one(w.s, 1, cmds...)
	if _, err := reborn(w.s); err != nil {
		w.t.Fatal(err)
	}
}

// comeBack registers a site that holds everything that it runs, in an entry that does one step.
func (w *world) comeBack(site string, held []Assignment) {
	w.t.Helper()
	var refs []command.AttemptRef
	for _, a := range held {
		refs = append(refs, a.AttemptRef)
	}
	w.step(w.registration(site, refs, nil))
	w.inc[site]++
	w.seq[site], w.offer[site] = 0, 0
}

func (w *world) stepAll() {
	w.t.Helper()
	for w.s.unfinished() {
		w.step()
	}
}

// TestLostAgainBeforeItsRegistrationIsActedOn: a site registers and is lost again while other work is left, and
// registers once more, which answers for everything. Its own tasks used to be shelved twice, counted as away though
// it was present, and no snapshot could be restored.
func TestLostAgainBeforeItsRegistrationIsActedOn(t *testing.T) {
	w, own := lostBehindWork(t, 0)
	w.comeBack("a", own)
	w.step(w.cmd("c", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term}))
	w.comeBack("a", own)
	w.stepAll()
	for _, a := range own {
		if v, _ := w.s.Tasks(a.Job, a.Task, 1); v[0].State != Assigned || v[0].Attempt != 1 {
			t.Errorf("a holds its task %d, which is %v in attempt %d", a.Task, v[0].State, v[0].Attempt)
		}
	}
}

// TestReportsBeforeARegistrationIsActedOn: a site that is back reports about its own tasks while its registration
// waits behind other work. Once a start left a state whose snapshots could not be restored, and the task assigned
// forever; a declared bound was dropped, so that what may run could be assigned again; a loss counted as away.
func TestReportsBeforeARegistrationIsActedOn(t *testing.T) {
	t.Run("started", func(t *testing.T) {
		w, own := lostBehindWork(t, 0)
		w.comeBack("a", own)
		w.step(w.cmd("a", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: own[0].AttemptRef}}}))
		w.stepAll()
		if v, _ := w.s.Tasks(own[0].Job, 0, 1); v[0].State != Running {
			t.Errorf("the task was started, and is %v", v[0].State)
		}
	})
	t.Run("bound", func(t *testing.T) {
		w, own := lostBehindWork(t, 0)
		w.comeBack("a", own)
		w.step(w.cmd("a", &command.Bound{Attempts: []command.BoundAttempt{{
			AttemptRef: own[0].AttemptRef, BoundMs: 100_000,
		}}}))
		w.stepAll()
		if a, _ := w.s.Assignment("a", own[0].AttemptRef); a.BoundMs == 0 {
			t.Error("the declared bound is not kept")
		}
	})
	t.Run("lost", func(t *testing.T) {
		w, own := lostBehindWork(t, 100_000)
		w.comeBack("a", own)
		w.step(w.cmd("a", &command.Complete{Attempts: []command.Ended{ended(own[0], command.Lost, 0)}}))
		w.stepAll()
		if v, _ := w.s.Tasks(own[0].Job, 0, 1); v[0].State != Stopping || len(w.s.Assignments("a")) != 1 {
			t.Errorf("the task may run until its bound, and is %v", v[0].State)
		}
	})
}
