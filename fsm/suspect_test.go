package fsm

import "testing"

// TestAWithdrawnSuspicionFindsTheAttemptAsItWas: a hint took idempotent tasks away
// from their site, counted a loss each time though none had happened, and gave cores
// to others on which the old processes ran.
func TestAWithdrawnSuspicionFindsTheAttemptAsItWas(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	j := w.job("a", 1)
	j.OnLoss = Immediate
	w.submit("a", j)
	before := w.s.Assignments("b")
	w.must("b", &Started{Attempts: []StartedAttempt{{before[0].AttemptRef, 0}}})
	before = w.s.Assignments("b")
	w.must("c", w.offering("c", 1)) // another site would take it at once
	for range MaxLosses + 1 {
		w.must("c", &Suspect{Site: "b", Incarnation: w.inc["b"], On: true})
		w.submit("c", w.job("c", 1)) // takes c's core, or would take b's
		w.must("c", &Suspect{Site: "b", Incarnation: w.inc["b"], On: false})
		if now := w.s.Assignments("b"); len(now) != 1 || now[0].AttemptRef != before[0].AttemptRef || !now[0].Started {
			t.Fatalf("%+v runs at b, it was %+v", now, before)
		}
	}
	w.must("b", &Complete{Attempts: []Ended{ended(before[0], Succeeded, 5)}})
	tasks, _ := w.s.Tasks(JobID{"a", 1}, 0, 1)
	if got := tasks[0]; got.State != TaskSucceeded || got.Losses != 0 {
		t.Errorf("the task ended %s with %d losses", got.State, got.Losses)
	}
	w.check()
}
