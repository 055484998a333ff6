package fsm

import (
	"testing"
)

// Some commands take a few bytes and are about all that a site has: an entry has room for
// tens of thousands of them. These tests give a state a storm of each.

// TestOffersLookAtNoFormerMachines has a site offer nothing, again and again, while tasks
// run on machines that it offered before. Each offer went through all these: 30,000 in an
// entry, beside 10,000 machines, took 22 s.
func TestOffersLookAtNoFormerMachines(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1, 1, 1))
	w.submit("a", w.job("a", 2))
	w.must("b", w.offering("b"))
	x := w.s.byName["b"]
	if len(x.machines) != 0 || len(x.former) != 2 || x.used.MilliCPU != 2000 || x.reach.MilliCPU != 2000 {
		t.Fatalf("%d machines, %d former ones, %v used, %v in reach", len(x.machines), len(x.former), x.used, x.reach)
	}
	w.must("b", w.offering("b", 1)) // one is offered again, with what runs there
	if len(x.machines) != 1 || x.machines[0].tasks != 1 || len(x.former) != 1 {
		t.Fatalf("%d tasks on the machine that is offered again, %d former ones", x.machines[0].tasks, len(x.former))
	}
	w.check()
	w.reborn()
	for _, a := range w.s.Assignments("b") {
		w.must("b", &Complete{Attempts: []Ended{ended(a, Succeeded, 1)}})
	}
	if x = w.s.byName["b"]; len(x.former) != 0 || x.used != (Resources{}) {
		t.Fatalf("%d former machines, %v used", len(x.former), x.used)
	}
	w.check()
}
