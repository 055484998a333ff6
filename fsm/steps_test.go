package fsm

import (
	"runtime"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// heldWorld makes b run many tasks of a that are not requeued at a hint; c runs two that are.
func heldWorld(t *testing.T, tasks uint32) *world {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.submit("a", w.job("a", tasks))
	w.must("b", w.offering("b", int64(tasks)))
	w.submitImmediate("a", 2)
	w.must("c", w.offering("c", 2))
	return w
}

// TestAChoreIsCutWhileItPutsInOrder begins chores at a site that runs much, several in an entry: sorting is
// cut like all other work. It used to be done as a whole when a chore began, and an entry with 25 lost
// sites took twice its bound of steps. What changes meanwhile is treated once, and replicas that are
// restored between the steps stay the same.
func TestAChoreIsCutWhileItPutsInOrder(t *testing.T) {
	const tasks, bound = 2000, 3000
	w := heldWorld(t, tasks)
	w.one(w.s, bound, w.hintCommands("c", true)...)
	var cmds []command.Command
	for range 3 {
		cmds = append(cmds, w.hintCommands("b", true)...)
		cmds = append(cmds, w.registration("b", nil, nil))
		w.inc["b"]++
	}
	refs := w.s.Assignments("b")
	last := cmds[len(cmds)-1].Body.(*command.Register)
	for i := 0; i < tasks; i += 2 {
		last.Held = append(last.Held, refs[i].AttemptRef)
	}
	w.one(w.s, bound, cmds...)
	total := w.s.Steps().Used
	for n := 0; w.s.unfinished(); n++ {
		twin, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		var more []command.Command
		if n < 20 { // changed while they are gathered, and ended
			more = append(more, w.cmd("b", &command.Bound{Attempts: []command.BoundAttempt{{
				AttemptRef: refs[8*n].AttemptRef, BoundMs: 1000,
			}}}))
			more = append(more, w.cmd("b", &command.Complete{Attempts: []command.Ended{ended(
				refs[8*n+4], command.Succeeded, 1,
			)}}))
		}
		w.one(w.s, bound, more...)
		w.one(twin, bound, more...)
		used := w.s.Steps().Used
		if twin.Steps().Used != used || twin.Hash() != w.s.Hash() {
			t.Fatalf("%d steps, restored %d", used, twin.Steps().Used)
		}
		if most := uint64(bound + gatherAtOnce*stepSort + 2*stepSettle + 40*stepSettle); used > most {
			t.Errorf("%d steps in one entry, at most %d were to be", used, most)
		}
		total += used
	}
	if least := uint64(4 * tasks * stepSort); total < least {
		t.Errorf("%d steps for three doubts and an answer, putting in order takes %d", total, least)
	}
	if left := w.s.Assignments("b"); len(left) != tasks/2-20 {
		t.Errorf("b goes on with %d, it held %d and ended 20", len(left), tasks/2)
	}
}

// TestAPassCountsWhatItResets ends a pass over many machines in an entry that does little else.
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
	w.one(w.s, 1, w.cmd("a", &command.Submit{Jobs: []command.JobSpec{wide}}))
	for w.s.unfinished() {
		w.one(w.s, 1)
	}
	if used := w.s.Steps().Used; used < machines*stepReset {
		t.Errorf("the pass ends with %d steps", used)
	}
}

// TestALaterRegistrationLooksAtWhatWasHeld registers a site again while its former registration is not yet
// acted on. That examines what the former one held, not everything that the site runs, which used to happen
// for each registration of an entry without a bound.
func TestALaterRegistrationLooksAtWhatWasHeld(t *testing.T) {
	w := heldWorld(t, 20_000)
	var refs []command.AttemptRef
	for _, a := range w.s.Assignments("b")[:2] {
		refs = append(refs, a.AttemptRef)
	}
	w.one(w.s, 1, w.hintCommands("c", true)...)
	w.one(w.s, 1, w.registration("b", refs, nil))
	w.reborn()
	w.s.Snapshot().Release() // what is changed now is copied first
	again := &command.Batch{Term: w.term, Elapsed: w.base, Commands: []command.Command{w.registration("b", refs[:1], nil)}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results, err := w.s.Apply(again)
	runtime.ReadMemStats(&after)
	if err != nil || results[0].Code != command.OK {
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
