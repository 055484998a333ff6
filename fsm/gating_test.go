package fsm

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// releasing returns a Release of runs of one job.
func releasing(num uint64, runs ...command.GateRun) *command.Release {
	return &command.Release{Jobs: []command.JobGates{{Num: num, Runs: runs}}}
}

// oneTask returns a run of one task.
func oneTask(task, attempt uint32, do command.GateAction) command.GateRun {
	return command.GateRun{From: task, To: task + 1, Attempt: attempt, Do: do}
}

// newGatedWorld is a federation whose version has gates, and a gated job of a, of so many tasks with three attempts.
// Site b offers a core.
func newGatedWorld(t *testing.T, tasks uint32, change func(*command.JobSpec)) *world {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	w.must("b", w.offering("b", 1))
	j := w.job("a", tasks)
	j.Gated, j.MaxAttempts = true, 3
	if change != nil {
		change(&j)
	}
	w.submit("a", j)
	return w
}

// gatedBusy returns a state with gated tasks in each place.
func gatedBusy(t tb) *world {
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	w.must("b", w.offering("b", 1))
	j, all := w.job("a", 9), w.job("a", 3)
	j.Gated, j.MaxAttempts, all.Gated = true, 3, true
	w.submit("a", j, all)
	w.must("a", releasing(1, command.GateRun{To: 3}))
	w.at(30)
	w.endOne(command.Failed, 2)
	w.endOne(command.Failed, 3)
	w.must("a", releasing(1, oneTask(0, 1, command.GateRelease), command.GateRun{From: 5, To: 7}))
	w.must("a", &command.Cancel{Job: firstJob, Task: 8})
	return w
}

// gates prints where a job's tasks stand.
func (w *world) gates() string {
	v, _ := w.s.Gates(firstJob, 0, 100)
	out := fmt.Sprintf("held %v queued %v", v.Held, v.Queued)
	for _, b := range v.Returned {
		out += fmt.Sprintf(" %d after %d: %s %d", b.Task, b.Attempt, b.End, b.ExitCode)
	}
	return out
}

// endOne reports the end of what b runs.
func (w *world) endOne(o command.Outcome, exit int32) {
	w.t.Helper()
	e := ended(w.s.Assignments("b")[0], o, 10)
	e.ExitCode, e.Ran = exit, true
	if o == command.Orphaned {
		w.must("b", &command.Orphans{Attempts: []command.Ended{e}})
		return
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{e}})
}

// TestGatedTasksWaitForTheirOwner: nothing of a gated job begins before it is released, then the lowest index first;
// what fails is held again with its exit code, and only a release for that attempt lets it go.
func TestGatedTasksWaitForTheirOwner(t *testing.T) {
	w := newGatedWorld(t, command.MaxCount, nil)
	if v, _ := w.s.Job(firstJob); v.State != Queued || v.Counts[Held] != command.MaxCount || v.Reason != heldWhy ||
		!v.Spec.Gated || len(w.s.Assignments("b")) > 0 {
		t.Fatalf("%+v, b runs %v", v, w.s.Assignments("b"))
	}
	if why, ok := w.s.Why(firstJob); !ok || why.Held != command.MaxCount || why.Waiting != 0 {
		t.Fatalf("why: %+v", why)
	}
	w.at(100)
	w.must("a", releasing(1, command.GateRun{From: 7, To: 9}, command.GateRun{From: 999_999, To: command.MaxCount}))
	if v := w.taskOf(firstJob, 7); v.State != Assigned || v.QueuedMs != 100 {
		t.Fatalf("%+v", v)
	}
	if got, want := w.gates(), "held [{0 7} {9 999999}] queued [{8 9} {999999 1000000}]"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	w.at(200)
	w.endOne(command.Failed, 3)
	if got, want := w.gates(), "held [{0 7} {9 999999}] queued [{999999 1000000}] 7 after 1: failed 3"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	v := w.taskOf(firstJob, 7)
	if v.State != Held || v.Attempt != 1 || v.ExitCode != 3 || v.Failures != 1 ||
		w.taskOf(firstJob, 8).State != Assigned {
		t.Fatalf("%+v", v)
	}
	for _, attempt := range []uint32{0, 2} {
		r := w.must("a", releasing(1, oneTask(7, attempt, command.GateRelease)))
		if len(r.Jobs) != 1 || r.Jobs[0] != command.NotHeld {
			t.Errorf("released for attempt %d: %+v", attempt, r)
		}
	}
	w.must("a", releasing(1, oneTask(7, 1, command.GateRelease)))
	w.endOne(command.Succeeded, 0)
	if v := w.taskOf(firstJob, 7); v.State != Assigned || v.Attempt != 2 {
		t.Fatalf("%+v", v)
	}
	w.check()
	if err := sameAfterRestore(w.s); err != nil {
		t.Error(err)
	}
}

// sameAfterRestore restores a state and compares what is read of it.
func sameAfterRestore(s *State) error {
	twin, err := reborn(s)
	if err != nil {
		return err
	}
	a, b := fmt.Sprint(s.ReturnedTasks("a")), fmt.Sprint(twin.ReturnedTasks("a"))
	if a != b {
		return fmt.Errorf("restored: %s\nwas %s", b, a)
	}
	return nil
}

// TestWhatRanIsHeldAgain: after each kind of end of an attempt.
func TestWhatRanIsHeldAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*world)
		want TaskState
	}{
		"failed":   {func(w *world) { w.endOne(command.Failed, 2) }, Held},
		"timeout":  {func(w *world) { w.endOne(command.TimedOut, 0) }, Held},
		"lost":     {func(w *world) { w.endOne(command.Lost, 0) }, Held},
		"stopped":  {func(w *world) { w.endOne(command.Stopped, 0) }, Held},
		"orphaned": {func(w *world) { w.endOne(command.Orphaned, 0) }, Held},
		"its site": {func(w *world) {
			w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term})
		}, Held},
		"declined": {func(w *world) {
			w.must("b", &command.Decline{Attempts: []command.AttemptRef{w.s.Assignments("b")[0].AttemptRef}})
		}, Queued},
		"handed back": {func(w *world) {
			back := &command.HandBack{Attempts: []command.AttemptRef{w.s.Assignments("b")[0].AttemptRef}}
			w.apply(w.cmd("b", &command.Offer{Version: 9}), w.cmd("b", back))
		}, Queued},
		"not begun": {func(w *world) { w.register("b") }, Queued},
		"succeeded": {func(w *world) { w.endOne(command.Succeeded, 0) }, TaskSucceeded},
	} {
		w := newGatedWorld(t, 3, nil)
		w.must("a", releasing(1, command.GateRun{From: 1, To: 2}))
		if v := w.taskOf(firstJob, 1); v.State != Assigned {
			t.Fatalf("%+v", v)
		}
		c.end(w)
		v := w.taskOf(firstJob, 1)
		if v.State != c.want || v.Attempt != 1 || len(w.s.ReturnedTasks("a")) != btoi(c.want == Held) {
			t.Errorf("%s: %+v, held again: %v", name, v, w.s.ReturnedTasks("a"))
		}
		w.check()
	}
}

// TestLastAttemptEndsGatedTasks: attempts and losses end a task as ever.
func TestLastAttemptEndsGatedTasks(t *testing.T) {
	w := newGatedWorld(t, 2, nil)
	for i := range uint32(3) {
		w.must("a", releasing(1, oneTask(0, i, command.GateRelease)))
		w.endOne(command.Failed, 4)
	}
	if v := w.taskOf(firstJob, 0); v.State != TaskFailed || v.Failures != 3 || v.ExitCode != 4 {
		t.Errorf("%+v", v)
	}
	for i := range uint32(MaxLosses) {
		w.must("a", releasing(1, oneTask(1, i, command.GateRelease)))
		w.endOne(command.Lost, 0)
	}
	if v := w.taskOf(firstJob, 1); v.State != TaskLost || v.Losses != MaxLosses {
		t.Errorf("%+v", v)
	}
	if j, _ := w.s.Job(firstJob); j.State != TaskFailed {
		t.Errorf("%+v", j)
	}
	w.check()
}

// TestUnwantedOutputsAreHeldAgain: a delivery that was lost, or failed, is one more attempt.
func TestUnwantedOutputsAreHeldAgain(t *testing.T) {
	for o, want := range map[command.Delivery]string{
		command.DeliveryLost:   "held [] queued [] 0 after 1: lost 0",
		command.DeliveryFailed: "held [] queued [] 0 after 1: failed 0",
	} {
		w := newGatedWorld(t, 1, func(j *command.JobSpec) { j.Delivers = true })
		w.must("a", releasing(1, command.GateRun{To: 1}))
		ref := w.succeeds("b")
		w.must("a", delivered(ref, o, "why"))
		if got := w.gates(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		w.check()
	}
}

// TestHeldTasksEndWithAReason: of a task that ran, its last exit code, its site and its token stay.
func TestHeldTasksEndWithAReason(t *testing.T) {
	w := newGatedWorld(t, 9, nil)
	var events []Event
	w.s.Observe(&events)
	w.must("a", releasing(1, command.GateRun{To: 1}))
	w.endOne(command.Failed, 78)
	end := oneTask(0, 1, command.GateFail)
	end.Reason = "exit code 78 is final"
	skip := command.GateRun{From: 2, To: 8, Do: command.GateCancel, Reason: "not wanted"}
	one := oneTask(8, 0, command.GateCancel)
	one.Reason = "task 8 of a.7 has failed"
	w.must("a", releasing(1, end, skip, one))
	v := w.taskOf(firstJob, 0)
	if v.State != TaskFailed || v.ExitCode != 78 || v.Site != "b" || v.Token == 0 || v.Reason != end.Reason ||
		v.Failures != 1 || v.Attempt != 1 {
		t.Errorf("%+v", v)
	}
	if v = w.taskOf(firstJob, 8); v.State != TaskCancelled || v.Reason != one.Reason || v.Attempt != 0 {
		t.Errorf("%+v", v)
	}
	if v = w.taskOf(firstJob, 3); v.State != TaskCancelled || v.Reason != "its owner ended it while it was held" {
		t.Errorf("%+v", v)
	}
	w.must("a", releasing(1, command.GateRun{To: command.MaxCount}))
	w.endOne(command.Succeeded, 0)
	if j, _ := w.s.Job(firstJob); j.State != TaskFailed || j.Reason != end.Reason {
		t.Errorf("%+v", j)
	}
	const want = `8 task.released a.1 task 0+1
8 task.assigned a.1 task 0+1 attempt 1 of 8 at b
9 task.held a.1 task 0+1 attempt 1 of 8 at b failed exit 78
10 task.ended a.1 task 0+1 attempt 1 of 0 failed exit 78 (exit code 78 is final)
10 task.ended a.1 task 2+6 cancelled (not wanted)
10 task.ended a.1 task 8+1 cancelled (task 8 of a.7 has failed)
11 task.released a.1 task 1+1
11 task.assigned a.1 task 1+1 attempt 1 of 11 at b
12 task.ended a.1 task 1+1 attempt 1 of 11 at b succeeded
12 job.ended a.1 task 0+9 failed (exit code 78 is final)
`
	if got := lines(events); got != want {
		t.Errorf("events are\n%s\nwant\n%s", got, want)
	}
	w.check()
}

// TestHoldByHand: what waits is held, what runs is not, and a task that ran before keeps its attempt.
func TestHoldByHand(t *testing.T) {
	w := newGatedWorld(t, 6, nil)
	w.must("a", releasing(1, command.GateRun{To: 4}))
	w.endOne(command.Failed, 1)
	w.must("a", releasing(1, oneTask(0, 1, command.GateRelease)))
	all := command.GateRun{To: command.MaxCount, Attempt: command.AnyAttempt, Do: command.GateHold}
	w.must("a", releasing(1, all))
	if got, want := w.gates(), "held [{2 6}] queued [] 0 after 1:  0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if v := w.taskOf(firstJob, 1); v.State != Assigned {
		t.Errorf("%+v", v)
	}
	if r := w.must("a", releasing(1, all)); len(r.Jobs) != 1 || r.Jobs[0] != command.NotHeld {
		t.Errorf("held twice: %+v", r)
	}
	w.endOne(command.Succeeded, 0)
	if n := len(w.s.Assignments("b")); n != 0 || w.s.Stats().Waiting != 0 {
		t.Errorf("b runs %d", n)
	}
	all.Do = command.GateRelease
	w.must("a", releasing(1, all))
	if v := w.taskOf(firstJob, 0); v.State != Assigned || v.Attempt != 2 {
		t.Errorf("%+v", v)
	}
	w.check()
}

// TestHeldTasksOfWhoIsAway: they are withdrawn while their owner is away, whatever is lost meanwhile, and end as lost
// with its departure.
func TestHeldTasksOfWhoIsAway(t *testing.T) {
	w := newGatedWorld(t, 5, nil)
	w.must("a", releasing(1, command.GateRun{To: 3}))
	w.must("b", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term})
	w.endOne(command.Failed, 1)
	if j, _ := w.s.Job(firstJob); j.State != Withdrawn || j.Counts[Withdrawn] != 5 || len(w.s.Assignments("b")) > 0 {
		t.Fatalf("%+v", j)
	}
	w.register("a")
	if j, _ := w.s.Job(firstJob); j.Counts[Held] != 3 || j.Counts[Assigned] != 1 || j.Counts[Queued] != 1 {
		t.Fatalf("%+v", j.Counts)
	}
	if v, whole := w.s.ReturnedSince("a", w.s.Index()-2); whole || len(v) != 1 || v[0].Task != 0 {
		t.Errorf("%+v, %v", v, whole)
	}
	w.must("a", &command.Forget{Site: "a"})
	if j, _ := w.s.Job(firstJob); j.Counts[TaskLost] != 4 || j.Counts[Assigned] != 1 {
		t.Errorf("%+v", j.Counts)
	}
	if _, whole := w.s.ReturnedSince("a", w.s.Index()-2); !whole {
		t.Error("what left by itself is not told")
	}
	w.check()
}

// TestCancelOfHeldTasks cancels tasks of each place, then all.
func TestCancelOfHeldTasks(t *testing.T) {
	w := newGatedWorld(t, 8, nil)
	w.must("a", releasing(1, command.GateRun{To: 3}))
	w.endOne(command.Failed, 1)
	for _, task := range []int64{0, 2, 5} { // ran, released, held
		w.must("a", &command.Cancel{Job: firstJob, Task: task})
		if r := w.do("a", &command.Cancel{Job: firstJob, Task: task}); r.Code != command.AlreadyEnded {
			t.Errorf("cancelled twice: %v", r.Code)
		}
		if v := w.taskOf(firstJob, uint32(task)); v.State != TaskCancelled || v.Reason != "cancelled at a" || v.ExitCode != 0 {
			t.Errorf("%+v", v)
		}
	}
	if got, want := w.gates(), "held [{3 5} {6 8}] queued []"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.must("a", &command.Cancel{Job: firstJob, Task: -1})
	if j, _ := w.s.Job(firstJob); j.Counts[TaskCancelled] != 7 || j.Counts[Stopping] != 1 {
		t.Errorf("%+v", j.Counts)
	}
	w.endOne(command.Stopped, 0)
	if j, _ := w.s.Job(firstJob); j.State != TaskCancelled || w.s.sites[0].held != 0 {
		t.Errorf("%+v", j)
	}
	if r := w.must("a", releasing(1, command.GateRun{To: 8})); r.Jobs[0] != command.AlreadyEnded {
		t.Errorf("%+v", r)
	}
	w.check()
}

// TestAnEarlierSuccessOfAHeldTask counts: an attempt that was in doubt succeeds after a later one has failed.
func TestAnEarlierSuccessOfAHeldTask(t *testing.T) {
	w := newGatedWorld(t, 1, func(j *command.JobSpec) { j.OnLoss = command.Immediate })
	w.must("a", releasing(1, command.GateRun{To: 1}))
	first := w.s.Assignments("b")[0]
	w.must("c", w.offering("c", 1))
	w.must("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true})
	second := w.s.Assignments("c")[0]
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(second, command.Failed, 1)}})
	if v := w.taskOf(firstJob, 0); v.State != Held || v.Attempt != 2 {
		t.Fatalf("%+v", v)
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(first, command.Succeeded, 1)}})
	if v := w.taskOf(firstJob, 0); v.State != TaskSucceeded || v.Attempt != 1 {
		t.Errorf("%+v", v)
	}
	w.check()
}

// TestGatesNeedTheirVersion: before it is in force gates leave no trace, as at a member that cannot read them.
func TestGatesNeedTheirVersion(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	j := w.job("a", 1)
	j.Gated = true
	for _, body := range []command.Body{
		&command.Submit{Jobs: []command.JobSpec{j}}, releasing(1, command.GateRun{To: 1}),
		&command.Prioritize{Jobs: []command.Priority{{Num: 1, Priority: 1}}},
	} {
		twin, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		r := w.apply(w.cmd("a", body))[0]
		if _, err := twin.Apply(w.batch(command.Command{Body: command.Unreadable{}})); err != nil {
			t.Fatal(err)
		}
		if r.Code != command.OutOfRange || w.s.Hash() != twin.Hash() {
			t.Errorf("%T: %v", body, r.Code)
		}
		w.seq["a"]--
	}
}

// TestForgedReleasesAreRefused: an owner's word in whatever bundle of another has no effect, and an owner can name its
// own jobs only.
func TestForgedReleasesAreRefused(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	w.must("b", w.offering("b", 1))
	j := w.job("a", 2)
	j.Gated = true
	w.submit("a", j)
	c := w.cmd("a", releasing(1, command.GateRun{To: 1}))
	for name, forged := range map[string]*command.Batch{
		"by another's key":    w.batchBy("b", c),
		"in another's bundle": oneOf(c, asSite("b", w.bundle(w.secret("b"), c))),
		"in no bundle":        {Commands: []command.Command{c}},
	} {
		forged.Term, forged.Elapsed = w.term, w.base
		r, err := w.s.Apply(forged)
		if err != nil || r[0].Code != command.NotSigned || len(w.s.Assignments("b")) > 0 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if r := w.must("b", releasing(1, command.GateRun{To: 1})); r.Jobs[0] != command.UnknownJob {
		t.Errorf("of another's job: %+v", r)
	}
	if w.apply(c); len(w.s.Assignments("b")) != 1 {
		t.Error("the owner's word was not executed")
	}
	w.check()
}

// TestPrioritizeOfWhatWaits: of an owner's jobs the one with the greater priority goes first, gated or not.
func TestPrioritizeOfWhatWaits(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	w.submit("a", w.job("a", 1), w.job("a", 1), w.job("a", 1))
	w.must("a", &command.Prioritize{Jobs: []command.Priority{{Num: 3, Priority: 5}, {Num: 1, Priority: -1}, {Num: 9}}})
	w.must("b", w.offering("b", 1, 1))
	var got []uint64
	for _, a := range w.s.Assignments("b") {
		got = append(got, a.Job.Num)
	}
	if fmt.Sprint(got) != "[2 3]" && fmt.Sprint(got) != "[3 2]" {
		t.Errorf("jobs %v run", got)
	}
	if v, _ := w.s.Job(firstJob); v.Spec.Priority != -1 || v.State != Queued {
		t.Errorf("%+v", v)
	}
	w.check()
}

// TestHoldMakesAJobGated: of a job that is not gated, of which tasks run, have ended, wait again, or were cancelled
// before their turn, what waits is held, which keeps its place; before the version that knows it, nothing is.
func TestHoldMakesAJobGated(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	j := w.job("a", 9)
	j.MaxAttempts = 3
	w.submit("a", j, w.job("a", 1))
	w.must("b", w.offering("b", 1, 1))
	w.endOne(command.Failed, 1)
	w.must("a", &command.Cancel{Job: firstJob, Task: 5})
	hold := releasing(1, command.GateRun{To: 9, Attempt: command.AnyAttempt, Do: command.GateHold})
	if r := w.must("a", hold); r.Jobs[0] != command.NotHeld || w.s.sites[0].held != 0 {
		t.Fatalf("before version %d: %+v", command.HoldVersion, r)
	}
	if v, _ := w.s.Job(firstJob); v.Spec.Gated {
		t.Fatal("it is gated")
	}
	w.must("a", &command.Raise{Version: command.HoldVersion})
	if r := w.must("a", releasing(1, command.GateRun{To: 9})); r.Jobs[0] != command.NotHeld {
		t.Errorf("a release: %+v", r)
	}
	waiting := w.s.Stats().Waiting
	w.must("a", hold)
	v, _ := w.s.Job(firstJob)
	if c := v.Counts; !v.Spec.Gated || c[Queued] != 0 || c[Held]+c[Assigned] != 8 || c[TaskCancelled] != 1 {
		t.Errorf("held: %v", v.Counts)
	}
	w.check()
	if r := w.must("a", hold); r.Jobs[0] != command.NotHeld {
		t.Errorf("held twice: %+v", r)
	}
	w.must("a", releasing(1, command.GateRun{To: 9, Attempt: command.AnyAttempt}))
	if got := w.s.Stats().Waiting; got != waiting {
		t.Errorf("%d wait, before it were %d", got, waiting)
	}
	for range 4 {
		for _, a := range w.s.Assignments("b") {
			if a.Job != firstJob {
				t.Errorf("job %s runs before the one that came first", a.Job)
			}
		}
		w.endOne(command.Succeeded, 0)
	}
	w.check()
}

// TestNobodyHoldsAnothersJobs: a Release and a Prioritize of another site than the owner's touch none of its jobs,
// gated or not: they name the numbers of their own.
func TestNobodyHoldsAnothersJobs(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.HoldVersion})
	gated := w.job("a", 3)
	gated.Gated = true
	w.submit("a", w.job("a", 3), gated)
	before := make([]JobView, 3)
	for num := uint64(1); num <= 2; num++ {
		before[num], _ = w.s.Job(command.JobID{Site: "a", Num: num})
	}
	for num := uint64(1); num <= 2; num++ {
		for do := command.GateRelease; do <= command.GateCancel; do++ {
			run := command.GateRun{To: 3, Attempt: command.AnyAttempt, Do: do}
			if r := w.must("b", releasing(num, run)); !slices.Equal(r.Jobs, []command.Code{command.UnknownJob}) {
				t.Errorf("job %d, action %d: %v", num, do, r.Jobs)
			}
		}
		w.must("b", &command.Prioritize{Jobs: []command.Priority{{Num: num, Priority: 9}}})
		after, _ := w.s.Job(command.JobID{Site: "a", Num: num})
		was := before[num]
		if after.Counts != was.Counts || after.Spec.Priority != 0 || after.Spec.Gated != was.Spec.Gated {
			t.Errorf("job %d: %+v, before %+v", num, after, was)
		}
	}
	w.check()
}

// TestHolesOfAJobAreBounded: a Release makes jobs gated of which few tasks were cancelled before their turn, together
// at most MaxGateHoles; the others it passes over, whatever they have become, and a later one takes them.
func TestHolesOfAJobAreBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.must("a", &command.Raise{Version: command.HoldVersion})
	const most = command.MaxGateHoles
	hold := &command.Release{}
	for i, holes := range []int64{most/2 + 1, most / 2, 10 * most} {
		num := uint64(i + 1)
		w.submit("a", w.job("a", 20*most+1))
		for at := range holes {
			w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: num}, Task: 2*at + 1})
		}
		hold.Jobs = append(hold.Jobs, command.JobGates{Num: num, Runs: []command.GateRun{{
			To: 20*most + 1, Attempt: command.AnyAttempt, Do: command.GateHold,
		}}})
	}
	want := [][]command.Code{
		{command.OK, command.NotHeld, command.NotHeld}, {command.OK, command.OK, command.NotHeld},
	}
	for i := range want {
		r := w.must("a", hold)
		if !slices.Equal(r.Jobs, want[i]) {
			t.Fatalf("command %d: %v", i, r.Jobs)
		}
		if used := w.s.Steps().Used; used > 5*most {
			t.Errorf("command %d took %d steps", i, used)
		}
		w.check()
	}
	for num, is := range map[uint64]bool{1: false, 3: true} {
		if v, _ := w.s.Gates(command.JobID{Site: "a", Num: num}, 0, 1); v.Gated == is || v.Scattered != is {
			t.Errorf("job %d: %+v", num, v)
		}
	}
}

// TestAMillionHeldTasksCostLittle: no memory for tasks that were never released, and a Release of 1000 of them costs
// few steps.
func TestAMillionHeldTasksCostLittle(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.GatesVersion})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 {
		j := w.job("a", command.MaxCount)
		j.Gated = true
		w.submit("a", j)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	take, held := int64(after.HeapAlloc)-int64(before.HeapAlloc), w.s.sites[0].held
	if take > 512<<10 || held != 50*command.MaxCount {
		t.Errorf("50 jobs of a million held tasks take %d KiB; %d are held", take>>10, held)
	}
	w.must("a", releasing(1, command.GateRun{From: 5000, To: 6000}))
	if used := w.s.Steps().Used; used > 1000 || w.s.Stats().Waiting != 1000 {
		t.Errorf("1000 released in %d steps", used)
	}
	if n := len(snapshotOf(t, w.s)); n > 4000 {
		t.Errorf("the snapshot takes %d bytes", n)
	}
}

// TestPiecesOfARunAreBounded: a run over tasks in many places does a bounded part, and goes on when it is sent again.
func TestPiecesOfARunAreBounded(t *testing.T) {
	w := newGatedWorld(t, 100, nil)
	w.must("b", &command.Offer{Version: 99})
	for i := int64(1); i < 100; i += 2 {
		w.must("a", &command.Cancel{Job: firstJob, Task: i})
	}
	for n := 0; ; n++ {
		r := w.must("a", releasing(1, command.GateRun{To: 100}))
		if got := int(w.s.Stats().Waiting); got != min(50, command.MaxGatePieces*(n+1)) {
			t.Fatalf("%d wait after %d", got, n+1)
		}
		if r.Jobs != nil {
			break
		}
	}
	w.check()
}

// TestRestoreRefusesFalseGates damages what a snapshot says of gates.
func TestRestoreRefusesFalseGates(t *testing.T) {
	for name, damage := range map[string]func(*world, *job, *gating){
		"in two places": func(_ *world, _ *job, g *gating) { g.released.list.First().to++ },
		"of no job":     func(_ *world, j *job, _ *gating) { j.gated = false },
		"no range":      func(_ *world, j *job, _ *gating) { j.next-- },
		"a later entry": func(w *world, _ *job, g *gating) { g.again.First().since = w.s.index + 1 },
		"no attempt":    func(_ *world, _ *job, g *gating) { g.again.First().attempt = 0 },
		"apart": func(_ *world, _ *job, g *gating) {
			v := *g.held.list.Final()
			g.held.list.Final().to--
			g.held.list.Insert(g.held.list.End(), span{v.to - 1, v.to, 0})
		},
		"another's record": func(_ *world, _ *job, g *gating) { g.again.First().last.task++ },
		"an older version": func(w *world, _ *job, _ *gating) { w.s.version = command.GatesVersion - 1 },
	} {
		w := newGatedWorld(t, 9, nil)
		w.must("a", releasing(1, command.GateRun{To: 5}))
		w.endOne(command.Failed, 1)
		j := w.s.mutJob(w.s.findJob(firstJob))
		damage(w, j, j.set(w.s.epoch).gates())
		if _, err := Restore(bytes.NewReader(snapshotOf(t, w.s))); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}
