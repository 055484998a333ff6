package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

var collected = command.Output{Manifest: [32]byte{0xab, 31: 1}, Size: 300, Bytes: 1 << 30}

var used = command.Measured{
	PeakBytes: 5 << 30, UserMs: 900, SystemMs: 30, InBytes: 7, OutBytes: 1 << 30, Source: command.MeasuredCgroup,
}

// deliveringWorld is a federation in which b and c run tasks of a's jobs that deliver.
func deliveringWorld(t tb, spoil ...func(*command.JobSpec)) *world {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 2))
	j := w.job("a", 2)
	j.Delivers = true
	for _, f := range spoil {
		f(&j)
	}
	w.submit("a", j)
	w.at(1000)
	return w
}

// succeeds ends a site's first assignment with outputs.
func (w *world) succeeds(site string) command.AttemptRef {
	a := w.s.Assignments(site)[0]
	e := ended(a, command.Succeeded, 700)
	e.Output, e.Measured = collected, used
	w.must(site, &command.Complete{Attempts: []command.Ended{e}})
	return a.AttemptRef
}

func delivered(ref command.AttemptRef, o command.Delivery, detail string) *command.Deliver {
	return &command.Deliver{Attempts: []command.Delivered{{AttemptRef: ref, Outcome: o, Detail: detail}}}
}

// taskOf returns one task of a job as it is shown.
func (w *world) taskOf(id command.JobID, i uint32) TaskView {
	list, _ := w.s.Tasks(id, i, 1)
	return list[0]
}

// restored continues on what the snapshot gives.
func (w *world) restored() {
	w.t.Helper()
	s, err := reborn(w.s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = s
}

var firstJob = command.JobID{Site: "a", Num: 1}

// A task whose attempt succeeded at another site frees its cores, is charged once, and ends when its owner has the
// outputs: its job with the last of them.
func TestATaskEndsWhenItsOutputsAreHome(t *testing.T) {
	w := deliveringWorld(t)
	var events []Event
	w.s.Observe(&events)
	ref := w.succeeds("b")
	charged := fmt.Sprint(w.s.Ledger().Matrix)
	if site, _ := w.s.Site("b"); site.Assigned.MilliCPU != 1000 {
		t.Errorf("b runs %v", site.Assigned)
	}
	v := w.taskOf(firstJob, 0)
	if v.State != Running || !v.Delivering || v.EndedMs >= 0 || v.Output != collected || v.Measured != used ||
		v.Site != "b" || v.Reason != "it has run at b: a fetches its outputs" {
		t.Errorf("the task is shown as %+v", v)
	}
	want := Delivery{AttemptRef: ref, Site: "b", Output: collected, Since: w.s.Index(), SinceMs: 1000}
	if got := w.s.Deliveries("a"); !slices.Equal(got, []Delivery{want}) || w.s.DeliveryChange("a") != w.s.Index() {
		t.Errorf("a is to fetch %+v", got)
	}
	w.restored()
	w.s.Observe(&events)
	other := w.succeeds("b")
	j, _ := w.s.Job(firstJob)
	if j.State != Running || j.Counts[Running] != 2 || j.Delivering != 2 ||
		!strings.HasPrefix(j.Reason, "2 tasks have run, and their outputs") {
		t.Errorf("the job is shown as %v, %v, %q", j.State, j.Counts, j.Reason)
	}
	w.at(5000)
	w.must("a", &command.Deliver{Attempts: []command.Delivered{{AttemptRef: ref}, {AttemptRef: other}}})
	j, _ = w.s.Job(firstJob)
	v = w.taskOf(firstJob, 0)
	if j.State != TaskSucceeded || j.EndedMs != 5000 || v.State != TaskSucceeded || v.Delivering || v.EndedMs != 700 ||
		v.Output != collected || v.Measured != used || len(w.s.Deliveries("a")) != 0 {
		t.Errorf("the job is %v at %d, the task %+v", j.State, j.EndedMs, v)
	}
	if again := fmt.Sprint(w.s.Ledger().Matrix); !strings.Contains(charged, " 1 ") || strings.Count(again, " 2 ") != 1 {
		t.Errorf("charged %s, then %s", charged, again)
	}
	wantEvents := `7 task.delivering a.1 task 0+1 attempt 1 of 6 at b succeeded ran 700 output ab00 of 1073741824 bytes measured by cgroup
8 task.delivering a.1 task 1+1 attempt 1 of 6 at b succeeded ran 700 output ab00 of 1073741824 bytes measured by cgroup
9 task.ended a.1 task 0+1 attempt 1 of 6 at b succeeded ran 700 delivered output ab00 of 1073741824 bytes measured by cgroup
9 task.ended a.1 task 1+1 attempt 1 of 6 at b succeeded ran 700 delivered output ab00 of 1073741824 bytes measured by cgroup
9 job.ended a.1 task 0+2 succeeded
`
	if got := lines(events); got != wantEvents {
		t.Errorf("events are\n%s\nwant\n%s", got, wantEvents)
	}
	w.restored()
	w.check()
}

// What a site runs for itself ends at once: it has the outputs. So does what declares none, whatever is told of it.
func TestOnlyOutputsOfOthersAreDelivered(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", w.offering("a", 1))
	j := w.job("a", 1)
	j.Delivers = true
	w.submit("a", j)
	w.succeeds("a")
	w.must("a", w.offering("a"))
	w.must("b", w.offering("b", 1))
	w.submit("a", w.job("a", 1))
	w.succeeds("b")
	for num, output := range map[uint64]command.Output{1: collected, 2: {}} {
		v := w.taskOf(command.JobID{Site: "a", Num: num}, 0)
		if v.State != TaskSucceeded || v.Output != output || v.Measured != used {
			t.Errorf("a.%d is %+v", num, v)
		}
	}
	w.check()
}

// Outputs that are lost count as a loss: the task runs again, unless it must not, or five were lost.
func TestLostOutputsAreALoss(t *testing.T) {
	for _, x := range []struct {
		onLoss command.OnLoss
		times  int
	}{{command.Fenced, MaxLosses}, {command.Immediate, MaxLosses}, {command.Never, 1}} {
		w := deliveringWorld(t, func(j *command.JobSpec) { j.Count, j.OnLoss = 1, x.onLoss })
		for i := range x.times {
			ref := w.succeeds("b")
			if v := w.taskOf(firstJob, 0); !v.Delivering || v.Losses != uint32(i) || v.Attempt != uint32(i+1) {
				t.Fatalf("%v: attempt %d: %+v", x.onLoss, i+1, v)
			}
			w.must("a", delivered(ref, command.DeliveryLost, ""))
			w.restored()
		}
		v := w.taskOf(firstJob, 0)
		if v.State != TaskLost || v.Losses != uint32(x.times) || v.Reason != "its outputs were lost at b" || v.Failures != 0 {
			t.Errorf("%v: %+v", x.onLoss, v)
		}
		if cell := w.s.Ledger().Matrix[0]; cell.Tasks != uint64(x.times) {
			t.Errorf("%v: %d runs are charged", x.onLoss, cell.Tasks)
		}
		w.check()
	}
}

// Outputs that are not what the job requires are a failure, by its max_attempts.
func TestMissingOutputsAreAFailure(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count, j.MaxAttempts = 1, 2 })
	for i := range 2 {
		ref := w.succeeds("b")
		w.must("a", delivered(ref, command.DeliveryFailed, "no file matches out/*.csv"))
		if v := w.taskOf(firstJob, 0); v.Failures != uint32(i+1) || v.Losses != 0 {
			t.Fatalf("after attempt %d: %+v", i+1, v)
		}
	}
	if v := w.taskOf(firstJob, 0); v.State != TaskFailed || v.Reason != "no file matches out/*.csv" || v.Output != collected {
		t.Errorf("%+v", v)
	}
	w.check()
}

// A failed attempt tells what it has collected. It does not wait for its owner.
func TestAFailedAttemptTellsItsOutputs(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count = 1 })
	e := ended(w.s.Assignments("b")[0], command.Failed, 10)
	e.Output, e.Measured, e.ExitCode = collected, used, 3
	w.must("b", &command.Complete{Attempts: []command.Ended{e}})
	w.restored()
	v := w.taskOf(firstJob, 0)
	if v.State != TaskFailed || v.Output != collected || v.Measured != used || len(w.s.Deliveries("a")) > 0 {
		t.Errorf("%+v", v)
	}
	if w.s.OutputsWanted("b", e.AttemptRef) {
		t.Error("the state wants the outputs of a task that has ended")
	}
}

// What is left of a task is what its last attempt left, if it has not succeeded; where no record says which that was,
// any may be.
func TestWhatIsLeftOfATask(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count, j.MaxAttempts = 3, 2 })
	fails := func() command.AttemptRef {
		e := ended(w.s.Assignments("b")[0], command.Failed, 10)
		e.Output = collected
		w.must("b", &command.Complete{Attempts: []command.Ended{e}})
		return e.AttemptRef
	}
	first := fails()
	if w.s.OutputsLeft("b", first) {
		t.Error("an attempt counts whose task is tried again")
	}
	var last command.AttemptRef
	for v := w.taskOf(firstJob, first.Task); v.State != TaskFailed; v = w.taskOf(firstJob, first.Task) {
		last = fails()
	}
	if last.Task != first.Task || w.s.OutputsLeft("b", first) || !w.s.OutputsLeft("b", last) {
		t.Errorf("behind %v and %v: %t, %t", first, last, w.s.OutputsLeft("b", first), w.s.OutputsLeft("b", last))
	}
	other, forged, unknown := last, last, last
	other.Task, forged.Token, unknown.Job.Num = 99, last.Token+1, 77
	for _, ref := range []command.AttemptRef{other, forged, unknown} {
		if w.s.OutputsLeft("b", ref) {
			t.Errorf("%v is taken for what is left", ref)
		}
	}
	if w.s.OutputsLeft("c", last) || w.s.OutputsLeft("nobody", last) {
		t.Error("another site has it")
	}
	succeeded := w.succeeds("b")
	w.must("a", delivered(succeeded, command.DeliveryOK, ""))
	if w.s.OutputsLeft("b", succeeded) {
		t.Error("of a task that has succeeded something is left")
	}
	w.restored()
	if !w.s.OutputsLeft("b", last) {
		t.Error("a snapshot changes it")
	}
}

// Repeats, other tokens, other attempts, tasks that wait or run, jobs that are unknown: none of them changes anything.
func TestStaleDeliversChangeNothing(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count = 3 })
	ref := w.succeeds("b")
	running := w.s.Assignments("b")[0].AttemptRef
	before := w.s.summary()
	for _, spoil := range []func(*command.AttemptRef){
		func(r *command.AttemptRef) { r.Token-- },
		func(r *command.AttemptRef) { r.Token++ },
		func(r *command.AttemptRef) { r.Attempt++ },
		func(r *command.AttemptRef) { r.Attempt-- },
		func(r *command.AttemptRef) { r.Task = 77 },
		func(r *command.AttemptRef) { r.Job.Num = 9 },
		func(r *command.AttemptRef) { *r = running },
	} {
		r := ref
		spoil(&r)
		for o := command.DeliveryOK; o <= command.DeliveryFailed; o++ {
			w.must("a", delivered(r, o, "stale"))
		}
	}
	if got := w.s.summary(); got != before || len(w.s.Deliveries("a")) != 1 {
		t.Errorf("stale words changed\n%s\nto\n%s", before, got)
	}
	c := w.cmd("a", delivered(ref, command.DeliveryOK, ""))
	w.apply(c)
	w.must("a", delivered(ref, command.DeliveryLost, "")) // too late: it has ended
	w.apply(c)
	if v := w.taskOf(firstJob, 0); v.State != TaskSucceeded || v.Losses != 0 {
		t.Errorf("%+v", v)
	}
	w.check()
}

// Only the owner says what became of outputs: a command of another site, even of one that ran them, is refused whole,
// with what it says of its own jobs.
func TestOnlyTheOwnerDelivers(t *testing.T) {
	w := deliveringWorld(t)
	ref := w.succeeds("b")
	own := command.AttemptRef{Job: command.JobID{Site: "c", Num: 1}, Attempt: 1}
	for _, site := range []string{"b", "c"} {
		c := delivered(ref, command.DeliveryOK, "")
		c.Attempts = append([]command.Delivered{{AttemptRef: own}}, c.Attempts...)
		if r := w.do(site, c); r.Code != command.NotOwner || !w.taskOf(firstJob, 0).Delivering {
			t.Errorf("%s: %v, %+v", site, r.Code, w.taskOf(firstJob, 0))
		}
	}
	w.check()
}

// In a federation with a roster a Deliver counts by its owner's signature, at all replicas alike.
func TestForgedDeliversAreRefused(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("b", w.offering("b", 1))
	j := w.job("a", 1)
	j.Delivers = true
	w.submit("a", j)
	ref := w.succeeds("b")
	twin, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	c := w.cmd("a", delivered(ref, command.DeliveryOK, ""))
	for name, forged := range map[string]*command.Batch{
		"by the executor's key":    w.batchBy("b", c),
		"in the executor's bundle": oneOf(c, asSite("b", w.bundle(w.secret("b"), c))),
		"in no bundle":             {Commands: []command.Command{c}},
	} {
		forged.Term, forged.Elapsed = w.term, w.base
		for _, s := range []*State{w.s, twin} {
			r, err := s.Apply(forged)
			if err != nil || r[0].Code != command.NotSigned || len(s.Deliveries("a")) != 1 {
				t.Errorf("%s: %v, %v, %v", name, r, err, s.Deliveries("a"))
			}
		}
		if w.s.Hash() != twin.Hash() {
			t.Errorf("%s: replicas differ", name)
		}
	}
	if r := w.apply(c)[0]; r.Code != command.OK || w.taskOf(firstJob, 0).State != TaskSucceeded {
		t.Errorf("by a's key: %v", r.Code)
	}
}
