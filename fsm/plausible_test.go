package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestEventsTellWhatTheLogDoesNotAllow: a site that reports a longer run than the log has time for is charged what the
// log allows, and the event says how much more it wanted.
func TestEventsTellWhatTheLogDoesNotAllow(t *testing.T) {
	w := newWorld(t, params())
	var events []Event
	w.s.Observe(&events)
	w.register("a")
	w.register("b")
	w.must("b", w.offering("b", 2))
	w.submit("a", w.job("a", 2))
	w.at(100)
	for i, run := range []int64{90, 190} { // with a delay of 10, since the assignment at 0
		ref := w.s.Assignments("b")[0].AttemptRef
		events = events[:0]
		w.must("b", &command.Complete{Attempts: []command.Ended{{AttemptRef: ref, Ran: true, DelayMs: 10, RunMs: run}}})
		if e := events[0]; e.Kind != EventTaskEnded || e.RunMs != 90 || e.BeyondMs != int64(100*i) {
			t.Errorf("a run of %d ms is told as %d and %d beyond", run, e.RunMs, e.BeyondMs)
		}
	}
}

// TestWhatIsLentIsSeen: also tasks that a site has declined would fit there; its own do not count.
func TestWhatIsLentIsSeen(t *testing.T) {
	w := newWorld(t, params())
	w.register("a")
	w.register("b")
	w.must("b", w.offering("b", 2))
	if l := w.s.Lending(); len(l) != 1 || l[0] != (Lending{Site: "b", MilliCPU: 2000}) {
		t.Fatalf("it lends %+v", l)
	}
	w.submit("a", w.job("a", 1))
	if l := w.s.Lending(); l[0].InUse != 1000 || wouldFit(w, "b") {
		t.Fatalf("with a task it lends %+v", l)
	}
	ref := w.s.Assignments("b")[0].AttemptRef
	w.must("b", &command.Decline{Attempts: []command.AttemptRef{ref}, Reason: "no"})
	if !wouldFit(w, "b") || w.s.WaitingFits("b") || wouldFit(w, "a") {
		t.Error("the declined task would fit there, and at no other site")
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.submit("b", w.job("b", 3))
	if wouldFit(w, "b") {
		t.Error("its own waiting task counts as another site's")
	}
}

// wouldFit asks without a bound that matters, whatever it begins with.
func wouldFit(w *world, site string) bool {
	w.t.Helper()
	fits, left := w.s.WaitingWouldFit(site, 0, 1000)
	for first := 1; first < 5; first++ {
		if again, too := w.s.WaitingWouldFit(site, first, 1000); again != fits || left < 0 || too < 0 {
			w.t.Fatalf("%s, beginning with %d: %v, %d, and with 0: %v, %d", site, first, again, too, fits, left)
		}
	}
	if found, left := w.s.WaitingWouldFit(site, 0, 0); found || fits && left >= 0 {
		w.t.Fatalf("%s: it looks at machines that it may not", site)
	}
	return fits
}
