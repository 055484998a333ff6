package fsm

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// leftWorld makes b run a task of a, and c's task wait for b's only core.
func leftWorld(t *testing.T, on command.OnLoss, bound int64) (*world, Assignment) {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	j := w.job("a", 1)
	j.OnLoss = on
	w.submit("a", j)
	a := w.s.Assignments("b")[0]
	if bound > 0 {
		w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: a.AttemptRef, BoundMs: bound}}})
	}
	w.must("b", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: a.AttemptRef, DelayMs: 0}}})
	c := w.job("c", 1)
	w.submit("c", c)
	return w, a
}

// takes reports whether c's task has b's core.
func (w *world) takes() bool {
	w.check()
	r, err := reborn(w.s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = r // everything that follows continues from the snapshot
	v, _ := w.s.Job(command.JobID{Site: "c", Num: 1})
	return v.Counts[Assigned] == 1
}

// pass lets log time pass, in steps that entries allow.
func (w *world) pass(ms int64) {
	for ; ms > 0; ms -= command.MaxStep {
		w.at(w.base + min(ms, command.MaxStep))
		w.apply()
	}
}

// TestAStopThatNobodyAnswersEnds: a cancelled task used to remain stopping forever if its site was present, renewed
// its lease and never reported the end.
func TestAStopThatNobodyAnswersEnds(t *testing.T) {
	w, a := leftWorld(t, command.Fenced, 0)
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.pass(stopMs - 1)
	if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); v.Counts[Stopping] != 1 {
		t.Fatalf("before its time: %v", v.Counts)
	}
	w.pass(1)
	v, _ := w.s.Job(command.JobID{Site: "a", Num: 1})
	if v.State != TaskCancelled || !strings.Contains(v.Reason, "b did not report its end within 600 s") {
		t.Errorf("the job is %s, %q", v.State, v.Reason)
	}
	if w.takes() {
		t.Error("the core was given to another while the process may run")
	}
	as := w.s.Assignments("b")
	if one, ok := w.s.Assignment("b", a.AttemptRef); len(as) != 1 || !as[0].Stop ||
		as[0].AttemptRef != a.AttemptRef || !ok || !one.Stop {
		t.Errorf("b is not told to stop it any more: %+v", as)
	}
	// The site still has it.
	if r := w.apply(w.registration("b", []command.AttemptRef{a.AttemptRef}, nil))[0]; r.Code != command.OK {
		t.Fatal(r)
	} else {
		w.inc["b"], w.seq["b"], w.offer["b"] = r.Incarnation, 0, 0
	}
	w.must("b", w.offering("b", 1))
	if w.takes() {
		t.Error("a registration that names it gave the core away")
	}
	before := w.s.byName["a"].account
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 5)}})
	if !w.takes() || len(w.s.leftovers) != 0 {
		t.Error("its end, reported late, did not free the core")
	}
	if w.s.byName["a"].account != before {
		t.Error("a run that nobody waited for any more was charged")
	}
	if v, _ = w.s.Job(command.JobID{Site: "a", Num: 1}); v.State != TaskCancelled {
		t.Errorf("a late report made the job %s", v.State)
	}
}

// TestAStopEndsByItsBound: what is certainly dead leaves nothing behind.
func TestAStopEndsByItsBound(t *testing.T) {
	w, _ := leftWorld(t, command.Fenced, 60_000)
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.pass(60_999)
	if w.takes() {
		t.Fatal("the core was given to another before the bound")
	}
	w.pass(1)
	if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); v.State != TaskCancelled || v.Reason != CancelledAt("a") {
		t.Errorf("the job is %s, %q", v.State, v.Reason)
	}
	if !w.takes() || len(w.s.leftovers) != 0 {
		t.Error("the core of a dead attempt is not free")
	}
}

// TestLeftoversEndWithTheirSite: they end when the site is lost (the lease kills them), when it registers without
// naming them, and when it departs.
func TestLeftoversEndWithTheirSite(t *testing.T) {
	for _, how := range []string{"lost", "registers", "forgotten"} {
		w, _ := leftWorld(t, command.Fenced, 0)
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
		w.pass(stopMs)
		if len(w.s.leftovers) != 1 {
			t.Fatalf("%d are left over", len(w.s.leftovers))
		}
		switch how {
		case "lost":
			w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term})
		case "registers":
			w.register("b")
		case "forgotten":
			w.must("b", &command.Forget{Site: "b"})
		}
		w.takes()
		if len(w.s.leftovers) != 0 {
			t.Errorf("%s: it is left over still", how)
		}
	}
}

// TestImmediateLeavesItsRoomTaken: the site lost an idempotent pod that may run for an hour. The task continues
// elsewhere at once; its core used to be given to others, too.
func TestImmediateLeavesItsRoomTaken(t *testing.T) {
	w, a := leftWorld(t, command.Immediate, 3_600_000)
	w.must("b", &command.Complete{Attempts: []command.Ended{{AttemptRef: a.AttemptRef, Outcome: command.Lost, Detail: "the pod is gone from sight"}}})
	v, _ := w.s.Job(command.JobID{Site: "a", Num: 1})
	if v.Counts[Queued] != 1 || w.takes() || len(w.s.Assignments("b")) != 0 {
		t.Errorf("%v; b runs %v, and is to do %+v", v.Counts, w.takes(), w.s.Assignments("b"))
	}
	w.register("b") // knows nothing of it: only the bound ends it
	w.must("b", w.offering("b", 2))
	if n := len(w.s.Assignments("b")); n != 1 {
		t.Errorf("%d tasks are at b, which has one core free of two", n)
	}
	w.pass(3_602_000)
	if n := len(w.s.Assignments("b")); n != 2 || len(w.s.leftovers) != 0 {
		t.Errorf("%d tasks are at b after the bound, %d left over", n, len(w.s.leftovers))
	}
	w.takes()
}
