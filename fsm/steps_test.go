package fsm

import (
	"runtime"
	"testing"
)

// heldWorld has b run many tasks of a that are not returned at a hint; c runs two that
// are.
func heldWorld(t *testing.T, tasks uint32) *world {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.submit("a", w.job("a", tasks))
	w.must("b", w.offering("b", int64(tasks)))
	w.submitImmediate("a", 2)
	w.must("c", w.offering("c", 2))
	return w
}

// TestAChoreCountsWhatItSorts has chores begin that sort much and do little: none begins
// behind another one in an entry that has done its part. On a replica that is restored
// between, and so sorts again, they count the same.
func TestAChoreCountsWhatItSorts(t *testing.T) {
	const tasks = 500
	w := heldWorld(t, tasks)
	w.one(w.s, 1, w.hintCommands("c", true)...)
	var cmds []Command
	for range 3 {
		cmds = append(cmds, w.hintCommands("b", true)...)
		cmds = append(cmds, w.registration("b", nil, nil))
		w.inc["b"]++
	}
	w.one(w.s, 1, cmds...)
	begins := 0
	for w.s.unfinished() {
		twin, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		w.one(w.s, 600)
		w.one(twin, 600)
		used := w.s.Steps().Used
		if twin.Steps().Used != used || twin.Hash() != w.s.Hash() {
			t.Fatalf("%d steps, restored %d", used, twin.Steps().Used)
		}
		if used >= 2*tasks*stepSort {
			t.Errorf("%d steps in one entry: two chores sorted in it", used)
		}
		if used >= tasks*stepSort {
			begins++
		}
	}
	if begins < 4 {
		t.Errorf("%d entries sorted, three doubts and an answer began", begins)
	}
}

// TestAPassCountsWhatItResets has a pass over many machines end in an entry that does
// little else.
func TestAPassCountsWhatItResets(t *testing.T) {
	const machines = 300
	w := newWorld(t, params(), "a")
	cores := make([]int64, machines)
	for i := range cores {
		cores[i] = 1
	}
	w.must("a", w.offering("a", cores...))
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 2000
	w.one(w.s, 1, w.cmd("a", &Submit{Jobs: []JobSpec{wide}}))
	for w.s.unfinished() {
		w.one(w.s, 1)
	}
	if used := w.s.Steps().Used; used < machines*stepReset {
		t.Errorf("the pass ends with %d steps", used)
	}
}

// TestALaterRegistrationLooksAtWhatWasHeld has a site register again while its former
// registration is not acted on: it looks at what that held, not at all that the site runs.
// The second was once done for each registration of an entry, and nothing bounded it.
func TestALaterRegistrationLooksAtWhatWasHeld(t *testing.T) {
	w := heldWorld(t, 20_000)
	var refs []AttemptRef
	for _, a := range w.s.Assignments("b")[:2] {
		refs = append(refs, a.AttemptRef)
	}
	w.one(w.s, 1, w.hintCommands("c", true)...)
	w.one(w.s, 1, w.registration("b", refs, nil))
	w.reborn()
	w.s.Snapshot().Release() // what is changed now is copied first
	again := &Batch{Term: w.term, Elapsed: w.base, Commands: []Command{w.registration("b", refs[:1], nil)}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results, err := w.s.Apply(again)
	runtime.ReadMemStats(&after)
	if err != nil || results[0].Code != OK {
		t.Fatal(results, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("it copies %d KiB", got>>10)
	}
	w.check()
	for w.s.unfinished() {
		w.one(w.s, maxSteps)
	}
	if as := w.s.Assignments("b"); len(as) != 1 || as[0].AttemptRef != refs[0] {
		t.Errorf("b goes on with %+v, it holds %v", as, refs[0])
	}
}
