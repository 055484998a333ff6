package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestAWithdrawnSuspicionFindsTheAttemptAsItWas: a hint used to count a loss each time although there was none, and
// gave cores to others on which the old processes still ran.
func TestAWithdrawnSuspicionFindsTheAttemptAsItWas(t *testing.T) {
	w, a := doubtWorld(t)
	w.at(w.base + 1000)
	w.apply()
	before, accounts := *w.s.attempts.Get(w.s.live[taskKey{1, 0}]), w.s.byName["b"].account
	for range 2 * maxDoubts { // nobody else has room: the task only waits
		w.suspect("b", true)
		if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); v.Counts[Queued] != 1 || w.s.byName["b"].used.MilliCPU != 1000 {
			t.Fatalf("at the hint %v, b uses %v", v.Counts, w.s.byName["b"].used)
		}
		if now := w.s.Assignments("b"); len(now) != 1 || now[0].AttemptRef != a.AttemptRef || now[0].Stop ||
			!now[0].Started || len(now[0].Payload) == 0 {
			t.Fatalf("in doubt b is to do %+v", now)
		}
		w.submit("c", w.job("c", 1)) // would take b's core
		w.reborn()
		w.suspect("b", false)
		now := *w.s.attempts.Get(w.s.live[taskKey{1, 0}])
		now.machine, now.changed, now.rank = before.machine, before.changed, before.rank
		now.prev, now.next = before.prev, before.next
		if now != before || w.s.byName["b"].account != accounts || len(w.s.leftovers) != 0 {
			t.Fatalf("it was %+v\nnow it is %+v", before, now)
		}
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 5)}})
	if got := w.task(); got.State != TaskSucceeded || got.Losses != 0 || got.Attempt != 1 {
		t.Errorf("the task is %+v", got)
	}
	w.check()
}
