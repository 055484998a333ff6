package fsm

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestOtherParamsAboveTheLimit: with a thirteenth site CE takes over from SHAPLEY, and the other parameters
// can still be changed.
func TestOtherParamsAboveTheLimit(t *testing.T) {
	names := make([]string, sched.MaxShapley)
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
	}
	w := newWaiting(t, sched.Shapley, 1, names...)
	w.register("late")
	p := w.s.params
	p.PreferOwn = !p.PreferOwn
	if r := w.do("late", &command.SetParams{Params: p}); r.Code != command.OK || w.s.params != p {
		t.Errorf("another parameter under SHAPLEY with 13 sites: %v", r.Code)
	}
	if w.s.Policy() != sched.CE {
		t.Errorf("%s counts", w.s.Policy())
	}
	w.check()
}

// TestSwitchesOfOneEntryBeginOnce: however often an entry changes the policy, the last one begins once,
// with everything that the entry's commands left waiting. The cost of a beginning grows with the number of
// jobs, and anybody may put a thousand switches into an entry: it allocates for one.
func TestSwitchesOfOneEntryBeginOnce(t *testing.T) {
	const jobs, switches = 10_000, 1001
	w := newWaiting(t, sched.Alone, 1, "a", "b")
	for range jobs / 1000 {
		specs := make([]command.JobSpec, 1000)
		for i := range specs {
			specs[i] = w.job("a", 1)
		}
		w.must("a", &command.Submit{Jobs: specs})
	}
	w.at(5000)
	var cmds []command.Command
	for i := range switches {
		p := w.s.params
		p.Policy = []string{sched.CE, sched.SimplDirect}[i%2]
		cmds = append(cmds, w.cmd("a", &command.SetParams{Params: p}))
	}
	cmds = append(cmds, w.cmd("b", &command.Submit{Jobs: []command.JobSpec{w.job("b", 4)}}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results := w.apply(cmds...)
	runtime.ReadMemStats(&after)
	for i, r := range results {
		if r.Code != command.OK {
			t.Fatalf("command %d: %v", i, r.Code)
		}
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d switches in one entry allocate %d MiB", switches, got>>20)
	}
	w.check()
	if w.s.Policy() != sched.CE || w.s.waits.since != w.s.time {
		t.Errorf("%s counts since %d, it is %d", w.s.Policy(), w.s.waits.since, w.s.time)
	}
	if got := w.s.waits.all; got.Units != jobs+4-2 || got.Started != (sched.Int128{}) {
		t.Errorf("all wait %+v", got)
	}
	if _, err := reborn(w.s); err != nil {
		t.Error(err)
	}
}

// TestAheadIsTakenOnceAnEntry: what the waiting tasks have ahead is shared among all that waited when the
// match began, including those that it takes before it has to compare sites.
func TestAheadIsTakenOnceAnEntry(t *testing.T) {
	w := newWaiting(t, sched.Alone, 0, "a", "b")
	at := func(owner, only string) command.JobSpec {
		j := w.job(owner, 1)
		j.Only = []string{only}
		return j
	}
	w.submit("a", at("a", "a"), at("a", "b"))
	w.submit("b", at("b", "b"))
	w.at(1000)
	for _, r := range w.apply(w.cmd("a", w.offering("a", 1)), w.cmd("b", w.offering("b", 1))) {
		if r.Code != command.OK {
			t.Fatal(r.Code)
		}
	}
	if got := w.s.waits.queued; got != 3 {
		t.Errorf("shared among %d units, three waited", got)
	}
	w.check()
}

// TestLostRunLeavesNothing: the extra length that was expected of a lost attempt leaves the virtual queues
// with it. Its task has its estimated length again, and counts as one, also if its owner is away when it is
// lost.
func TestLostRunLeavesNothing(t *testing.T) {
	for _, away := range []bool{false, true} {
		w := newWaiting(t, sched.Alone, 0, "a", "b", "c")
		lose := func(x string) {
			w.apply(w.cmd("c", &command.SiteLost{Site: x, Incarnation: w.inc[x], Term: w.term}))
		}
		alone := func() (q sched.QueueState) { // a's own, with one core
			i := 0
			for x := range w.s.waits.queues.All {
				if i == 1+int(w.s.byName["a"].id) {
					q = x.State()
				}
				i++
			}
			return q
		}
		others := w.job("a", 20) // there they take the core one after the other
		others.Only, others.TimeoutMs = []string{"c"}, 1000
		w.submit("a", others)
		w.must("b", w.offering("b", 1))
		j := w.job("a", 1)
		j.TimeoutMs = 1000
		w.submit("a", j)
		w.at(10_000)
		w.apply()
		if got := alone(); got.Units != 11 || got.Work != sched.Int64(10_000+16_000) {
			t.Fatalf("long past its estimate: %+v", got)
		}
		if away {
			lose("a")
		}
		lose("b")
		if away {
			w.register("a")
		}
		w.apply()
		units := int64(11)
		if away { // everything is released again
			units = 21
		}
		if got := alone(); got.Units != units || got.Work != sched.Int64(units*1000) {
			t.Errorf("away %v: after its attempt was lost: %+v", away, got)
		}
		w.check()
	}
}

// TestWhatComesAndGoesInOneEntry: a job that is submitted and cancelled in one entry, or whose site leaves in it,
// counts as never having been there.
func TestWhatComesAndGoesInOneEntry(t *testing.T) {
	for _, leave := range []bool{false, true} {
		w := newWaiting(t, sched.Alone, 0, "a", "b")
		j := w.job("a", 3)
		var then command.Body = &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: -1}
		if leave {
			then = &command.Leave{}
		}
		for i, r := range w.apply(w.cmd("a", &command.Submit{Jobs: []command.JobSpec{j}}), w.cmd("a", then)) {
			if r.Code != command.OK {
				t.Fatalf("command %d: %v", i, r.Code)
			}
		}
		for q := range w.s.waits.queues.All {
			if got := q.State().Units; got != 0 {
				t.Errorf("leave %v: %d units wait in a virtual queue", leave, got)
			}
		}
		w.check()
	}
}

// TestFailedAndCancelledInOneEntry: a task that failed and would wait again, and is cancelled in the same
// entry, is not released once more; nor is what a site had waiting if it returns and cancels in one entry.
func TestFailedAndCancelledInOneEntry(t *testing.T) {
	for name, task := range map[string]int64{"the task": 0, "the job": -1} {
		w := newWaiting(t, sched.Alone, 1, "a")
		w.failAndCancel(task)
		if got := w.unitsWaiting(); got[0] != 0 || got[1] != 0 {
			t.Errorf("%s was cancelled: %d units wait in the virtual queues", name, got)
		}
		w.check()
	}
	w := newWaiting(t, sched.Alone, 1, "a", "b")
	w.backAndCancelled()
	if got := w.unitsWaiting(); got[0] != 0 || got[1] != 0 {
		t.Errorf("back and cancelled: %d units wait in the virtual queues", got)
	}
	w.check()
}

// runsForAway makes b run an immediate task of a, which is away, under ALONE.
func runsForAway(t *testing.T) *world {
	t.Helper()
	w := newWaiting(t, sched.Alone, 0, "a", "b", "c")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	w.apply(w.cmd("c", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term}))
	return w
}

// TestSuspectedAndLostLeavesNothing: a site that runs a task of an absent one is suspected and then lost.
// In the entry of the loss the task gets its attempt back and waits again; nothing of that remains in the
// virtual queues, where an absent site has nothing.
func TestSuspectedAndLostLeavesNothing(t *testing.T) {
	w := runsForAway(t)
	for _, c := range []command.Body{
		&command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true},
		&command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term},
	} {
		w.apply(w.cmd("c", c))
		w.check()
		if got := w.unitsWaiting(); got[1+w.s.byName["a"].id] != 0 {
			t.Errorf("after %T %d units wait in the virtual queues", c, got)
		}
	}
}

// TestADoubtOfWhoIsAwayIsNoWait: a site's task is in doubt for a long time and gets its attempt back while
// the site is away, and is then lost. In the virtual queues it has not waited for less than nothing.
func TestADoubtOfWhoIsAwayIsNoWait(t *testing.T) {
	w := runsForAway(t)
	for _, c := range []command.Body{
		&command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true}, &command.Suspect{Site: "b", Incarnation: w.inc["b"]},
		&command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term},
	} {
		w.apply(w.cmd("c", c))
		w.check()
		w.at(5000)
	}
	i := 0
	for q := range w.s.waits.queues.All {
		if got := q.State().Settled; got.Sign() != 0 {
			t.Errorf("what left queue %d waited %v", i, got)
		}
		i++
	}
}

// TestADoubtWhileAPolicyBegins: a suspicion comes and goes in one entry before the attempt in question is
// entered into the virtual queues; then it is in them once.
func TestADoubtWhileAPolicyBegins(t *testing.T) {
	w := newWaiting(t, sched.SimplDirect, 0, "a", "b")
	w.must("b", w.offering("b", 2))
	w.submitImmediate("a", 2)
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Succeeded, 0)}})
	apply := func(steps uint64, cmds ...command.Command) {
		w.s.bounds.steps = steps
		if _, err := w.s.Apply(&command.Batch{Term: w.term, Elapsed: w.base, Commands: cmds}); err != nil {
			t.Fatal(err)
		}
		w.check()
	}
	p := w.s.params
	p.Policy = sched.Alone
	apply(1, w.cmd("a", &command.SetParams{Params: p}))
	if !w.s.beginning() || w.s.waits.has(1, 1) {
		t.Fatal("all is entered at once")
	}
	apply(
		maxSteps, w.cmd("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true}),
		w.cmd("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"]}),
	)
	if got := w.unitsWaiting(); w.s.beginning() || got[1] != 1 {
		t.Errorf("of the task that runs %d units are in the virtual queues", got)
	}
}

// unitsWaiting returns the units of the virtual queues.
func (w *world) unitsWaiting() (units []int64) {
	for q := range w.s.waits.queues.All {
		units = append(units, q.State().Units)
	}
	return units
}

// failAndCancel fails a task and cancels it, or the whole job, in the same entry.
func (w *world) failAndCancel(task int64) {
	w.t.Helper()
	j := w.job("a", 1)
	j.MaxAttempts = 3
	w.submit("a", j)
	w.at(1000)
	failed := w.cmd("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Failed, 1000)}})
	for _, r := range w.apply(failed, w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: task})) {
		if r.Code != command.OK {
			w.t.Fatal(r.Code)
		}
	}
}

// backAndCancelled loses a site that waits with three tasks; in one entry it returns and cancels them.
func (w *world) backAndCancelled() {
	w.t.Helper()
	w.must("a", w.offering("a", 0))
	w.must("b", w.offering("b", 0))
	j := w.job("a", 3)
	w.submit("a", j)
	w.at(1000)
	w.apply(w.cmd("b", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term}))
	back := w.registration("a", nil, nil)
	w.inc["a"]++
	then := w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: -1})
	for _, r := range w.apply(back, then) {
		if r.Code != command.OK {
			w.t.Fatalf("%+v", r)
		}
	}
}
