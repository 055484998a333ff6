package fsm

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// submitImmediate submits a job whose tasks are to be requeued at the first hint.
func (w *world) submitImmediate(site string, count uint32) {
	w.t.Helper()
	j := w.job(site, count)
	j.OnLoss = command.Immediate
	w.submit(site, j)
}

// doubtWorld makes b run an immediate task of a; c has no machine yet.
func doubtWorld(t *testing.T) (*world, Assignment) {
	t.Helper()
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	a := w.s.Assignments("b")[0]
	w.at(50)
	w.must("b", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: a.AttemptRef, DelayMs: 20}}})
	return w, a
}

func (w *world) suspect(site string, on bool) {
	w.t.Helper()
	w.must("a", &command.Suspect{Site: site, Incarnation: w.inc[site], On: on})
	w.check()
}

func (w *world) lose(site string) {
	w.t.Helper()
	w.must("a", &command.SiteLost{Site: site, Incarnation: w.inc[site], Term: w.term})
	w.check()
}

// reborn makes the world continue from the state's snapshot.
func (w *world) reborn() {
	w.t.Helper()
	r, err := reborn(w.s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = r
}

// task returns the only task of a's first job.
func (w *world) task() TaskView {
	tasks, _ := w.s.Tasks(command.JobID{Site: "a", Num: 1}, 0, 1)
	return tasks[0]
}

// elsewhere makes b suspected and its task run at c.
func (w *world) elsewhere() Assignment {
	w.t.Helper()
	w.must("c", w.offering("c", 1))
	w.suspect("b", true)
	as := w.s.Assignments("c")
	if len(as) != 1 || as[0].Attempt != 2 {
		w.t.Fatalf("c is to run %+v", as)
	}
	w.must("c", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: as[0].AttemptRef, DelayMs: 0}}})
	return as[0]
}

// TestImmediateRunsElsewhereAtTheHint checks what on_loss immediate promises.
func TestImmediateRunsElsewhereAtTheHint(t *testing.T) {
	w, a := doubtWorld(t)
	second := w.elsewhere()
	got := w.task()
	if got.State != Running || got.Site != "c" || got.Losses != 0 || !strings.Contains(got.Reason, "may run twice: b was suspected") {
		t.Errorf("the task is %+v", got)
	}
	if as := w.s.Assignments("b"); len(as) != 1 || !as[0].Stop || as[0].AttemptRef != a.AttemptRef {
		t.Errorf("b is to do %+v", as)
	}
	w.reborn()
	w.suspect("b", false)
	if as := w.s.Assignments("b"); len(as) != 1 || !as[0].Stop || w.s.byName["b"].used.MilliCPU != 1000 {
		t.Errorf("heard again, b is to do %+v", as)
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Stopped, 5)}})
	if len(w.s.leftovers) != 0 || w.s.byName["b"].used.MilliCPU != 0 {
		t.Error("its end did not free the core")
	}
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(second, command.Succeeded, 5)}})
	if got = w.task(); got.State != TaskSucceeded || got.Losses != 0 || got.Attempt != 2 ||
		w.s.byName["b"].account.Gave != (sched.Sums{}) {
		t.Errorf("the task is %+v", got)
	}
	w.check()
}

// TestFencedWaitsForTheLoss: only tasks that asked for it may run twice.
func TestFencedWaitsForTheLoss(t *testing.T) {
	for _, on := range []command.OnLoss{command.Fenced, command.Never} {
		w, a := leftWorld(t, on, 0)
		w.suspect("b", true)
		if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); v.Counts[Running] != 1 ||
			w.s.Assignments("b")[0].AttemptRef != a.AttemptRef {
			t.Errorf("at the hint %v", v.Counts)
		}
	}
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("b", 1)
	w.suspect("b", true)
	if v, _ := w.s.Job(command.JobID{Site: "b", Num: 1}); v.Counts[Assigned] != 1 {
		t.Errorf("of its own site at the hint %v", v.Counts)
	}
}

// TestTheFirstResultWins: of two attempts the first to succeed counts, whichever it is; the other one is stopped,
// and charged to nobody.
func TestTheFirstResultWins(t *testing.T) {
	w, a := doubtWorld(t)
	second := w.elsewhere()
	w.at(w.base + 1000)
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 7)}})
	got := w.task()
	if got.State != TaskSucceeded || got.Site != "b" || got.Attempt != 1 || got.Losses != 0 {
		t.Errorf("the task is %+v", got)
	}
	if as := w.s.Assignments("c"); len(as) != 1 || !as[0].Stop || as[0].AttemptRef != second.AttemptRef {
		t.Errorf("c is to do %+v", as)
	}
	used := w.s.byName["a"].account
	w.reborn()
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(second, command.Succeeded, 900)}})
	if w.s.byName["a"].account != used || len(w.s.leftovers) != 0 || w.task().Attempt != 1 {
		t.Error("the second result counted, too")
	}
	w.check()
}

// TestTheSecondResultIsDropped: nothing changes a task that has ended.
func TestTheSecondResultIsDropped(t *testing.T) {
	w, a := doubtWorld(t)
	second := w.elsewhere()
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(second, command.Succeeded, 7)}})
	used := w.s.byName["a"].account
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 7)}})
	w.check()
	if got := w.task(); got.Attempt != 2 || got.Site != "c" || w.s.byName["a"].account != used || len(w.s.leftovers) != 0 {
		t.Errorf("the task is %+v, %d left over", got, len(w.s.leftovers))
	}
}

// TestAFailureOfTheOldAttemptIsDropped: the task runs elsewhere, and may succeed there.
func TestAFailureOfTheOldAttemptIsDropped(t *testing.T) {
	for _, o := range []command.Outcome{command.Failed, command.TimedOut, command.Stopped} {
		w, a := doubtWorld(t)
		w.elsewhere()
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, o, 7)}})
		if got := w.task(); got.State != Running || got.Attempt != 2 || got.Failures+got.Losses != 0 ||
			len(w.s.leftovers) != 0 {
			t.Errorf("after outcome %d the task is %+v", o, got)
		}
		w.check()
	}
}

// TestAnEndInDoubtCounts: while the task waits, its site's reports about the attempt count as usual; a start or a
// bound does not end the doubt.
func TestAnEndInDoubtCounts(t *testing.T) {
	for name, c := range map[string]struct {
		body func(command.AttemptRef) command.Body
		want TaskState
	}{
		"succeeded": {func(r command.AttemptRef) command.Body {
			return &command.Complete{Attempts: []command.Ended{{AttemptRef: r, RunMs: 5}}}
		}, TaskSucceeded},
		"failed": {func(r command.AttemptRef) command.Body {
			return &command.Complete{Attempts: []command.Ended{{AttemptRef: r, Outcome: command.Failed}}}
		}, TaskFailed},
		"started": {func(r command.AttemptRef) command.Body {
			return &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: r, DelayMs: 0}}}
		}, Queued},
		"bound": {func(r command.AttemptRef) command.Body {
			return &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: r, BoundMs: 1000}}}
		}, Queued},
		"declined": {func(r command.AttemptRef) command.Body {
			return &command.Decline{Attempts: []command.AttemptRef{r}, Reason: "full"}
		}, Queued},
	} {
		w, a := doubtWorld(t)
		w.suspect("b", true)
		if got := w.task(); got.State != Queued || got.Reason != "may run twice: b is suspected, where attempt 1 may run on" {
			t.Errorf("in doubt the task is %+v", got)
		}
		w.must("b", c.body(a.AttemptRef))
		w.check()
		open := name == "started" || name == "bound"
		if got := w.task(); got.State != c.want || got.Losses != 0 || len(w.s.leftovers) == 1 != open {
			t.Errorf("%s: the task is %+v", name, got)
		}
		w.suspect("b", false)
	}
}

// TestAStartInDoubtIsKept keeps what its site reports of an attempt that may get its task back.
func TestAStartInDoubtIsKept(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	ref := w.s.Assignments("b")[0].AttemptRef
	w.suspect("b", true)
	w.at(90)
	w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: ref, BoundMs: 5000}}})
	w.must("b", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref, DelayMs: 40}}})
	w.must("b", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref, DelayMs: 70}}})
	w.reborn()
	w.suspect("b", false)
	got := w.task()
	if as := w.s.Assignments("b"); got.State != Running || got.StartedMs != 40 || as[0].BoundMs != 6090 || !as[0].Started {
		t.Errorf("the task is %+v, b has %+v", got, as)
	}
}

// TestALossAfterADoubtCountsOnce: whether its task was waiting, running elsewhere or waiting again by then.
func TestALossAfterADoubtCountsOnce(t *testing.T) {
	for _, when := range []string{"waits", "runs elsewhere", "waits again", "by its own word", "registered without it"} {
		w, a := doubtWorld(t)
		switch when {
		case "waits":
			w.suspect("b", true)
			w.lose("b")
		case "runs elsewhere":
			w.elsewhere()
			w.lose("b")
		case "waits again":
			second := w.elsewhere()
			w.must("c", &command.Decline{Attempts: []command.AttemptRef{second.AttemptRef}, Reason: "busy"})
			w.reborn()
			w.lose("b")
		case "by its own word":
			w.elsewhere()
			w.must("b", &command.Complete{Attempts: []command.Ended{{AttemptRef: a.AttemptRef, Outcome: command.Lost}}})
		case "registered without it":
			w.elsewhere()
			w.register("b")
		}
		w.check()
		if got := w.task(); got.Losses != 1 || got.State.Ended() || len(w.s.leftovers) != 0 {
			t.Errorf("%s: the task is %+v, %d left over", when, got, len(w.s.leftovers))
		}
	}
}

// TestADoubtIsSettledByARegistration: what the site still has continues; the rest ends as if there had been no
// doubt.
func TestADoubtIsSettledByARegistration(t *testing.T) {
	for _, held := range []bool{true, false} {
		w, a := doubtWorld(t)
		w.suspect("b", true)
		var refs []command.AttemptRef
		if held {
			refs = []command.AttemptRef{a.AttemptRef}
		}
		if r := w.apply(w.registration("b", refs, nil))[0]; r.Code != command.OK {
			t.Fatal(r)
		}
		w.check()
		got := w.task()
		if held && (got.State != Running || got.Attempt != 1 || got.Losses != 0) ||
			!held && (got.State != Queued || got.Losses != 1) {
			t.Errorf("held %v: the task is %+v", held, got)
		}
	}
}

// TestARegistrationForgetsWhatWentOnElsewhere: a site registers without an attempt that it never reported as
// started, whose task continued elsewhere and whose bound has not passed. The attempt keeps its room until then,
// and the state can be restored. Once it could not, since a leftover was both given up and in doubt.
func TestARegistrationForgetsWhatWentOnElsewhere(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{
		AttemptRef: w.s.Assignments("b")[0].AttemptRef, BoundMs: 100_000,
	}}})
	w.elsewhere()
	w.register("b")
	w.check()
	w.reborn()
	if got := w.task(); got.Site != "c" || got.Losses != 0 || len(w.s.leftovers) != 1 || len(w.s.Assignments("b")) != 0 {
		t.Errorf("the task is %+v, %d left over", got, len(w.s.leftovers))
	}
	w.lose("b")
	if got := w.task(); got.Losses != 0 {
		t.Errorf("what never started counted as lost: %+v", got)
	}
	w.pass(200_000)
	if len(w.s.leftovers) != 0 {
		t.Error("its bound has passed")
	}
}

// TestCancelInDoubt: a cancel ends the task at once, and stops the attempt.
func TestCancelInDoubt(t *testing.T) {
	for _, task := range []int64{-1, 0} {
		w, a := doubtWorld(t)
		w.suspect("b", true)
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: task})
		w.reborn()
		if got := w.task(); got.State != TaskCancelled {
			t.Errorf("the task is %+v", got)
		}
		w.suspect("b", false)
		if as := w.s.Assignments("b"); len(as) != 1 || !as[0].Stop || as[0].StopWhy != CancelledAt("a") {
			t.Errorf("b is to do %+v", as)
		}
		used := w.s.byName["a"].account.Used
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 5)}})
		w.check()
		if got := w.task(); got.State != TaskCancelled || w.s.byName["a"].account.Used != used || len(w.s.leftovers) != 0 {
			t.Errorf("after a late success the task is %+v", got)
		}
	}
}

// TestCancelledAndSuspected: a suspicion after the cancel ends the task at once, too.
func TestCancelledAndSuspected(t *testing.T) {
	w, _ := doubtWorld(t)
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 0})
	w.suspect("b", true)
	if got := w.task(); got.State != TaskCancelled || got.Reason != CancelledAt("a") {
		t.Errorf("the task is %+v", got)
	}
	if as := w.s.Assignments("b"); len(as) != 1 || !as[0].Stop || w.s.byName["b"].used.MilliCPU != 1000 {
		t.Errorf("b is to do %+v", as)
	}
}

// TestABoundThatPassesInDoubt: the bound ends nothing while the task may get its attempt back, and the leftover
// as soon as it may not.
func TestABoundThatPassesInDoubt(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	a := w.s.Assignments("b")[0]
	w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: a.AttemptRef, BoundMs: 1000}}})
	w.suspect("b", true)
	w.pass(5000)
	if w.check(); len(w.s.leftovers) != 1 {
		t.Fatal("it is not in doubt any more")
	}
	w.must("c", w.offering("c", 1))
	if w.check(); len(w.s.leftovers) != 0 || w.task().Attempt != 2 {
		t.Errorf("%d left over, the task is %+v", len(w.s.leftovers), w.task())
	}
}

// TestAFlickeringSiteLeavesFewAttempts: after a few hints only a loss requeues the task.
func TestAFlickeringSiteLeavesFewAttempts(t *testing.T) {
	w, _ := doubtWorld(t)
	w.must("c", w.offering("c", 1))
	for range 10 {
		for _, x := range []string{"b", "c"} {
			w.suspect(x, true)
			for _, as := range w.s.Assignments(x) {
				if as.Stop {
					w.must(x, &command.Complete{Attempts: []command.Ended{ended(as, command.Stopped, 1)}})
				}
			}
			w.suspect(x, false)
			w.reborn()
		}
	}
	got := w.task()
	if got.Attempt != maxDoubts+1 || got.Losses != 0 || got.State != Assigned && got.State != Running ||
		len(w.s.leftovers) != 0 {
		t.Fatalf("the task is %+v, %d left over", got, len(w.s.leftovers))
	}
	w.lose(got.Site)
	if now := w.task(); now.Losses != 1 {
		t.Errorf("after the loss the task is %+v", now)
	}
}

// TestManyAttemptsInDoubt handles many attempts in several entries, in the order of jobs and tasks, restoring
// after each; commands in between meet what has been reached.
func TestManyAttemptsInDoubt(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 40))
	w.submitImmediate("a", 40)
	w.must("c", w.offering("c", 10))
	w.s.bounds.steps = 300
	entries := func(c command.Command) (n int) {
		cmds := []command.Command{c}
		for ; n == 0 || w.s.unfinished(); n++ {
			if _, err := w.s.Apply(&command.Batch{Term: w.term, Elapsed: w.base, Commands: cmds}); err != nil {
				t.Fatal(err)
			}
			if used := w.s.Steps(); used.Used > used.Bound+used.Bound/2+200 {
				t.Fatalf("%d steps of %d", used.Used, used.Bound)
			}
			cmds = nil
			w.check()
			w.reborn()
		}
		return n
	}
	if n := entries(w.cmd("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true})); n < 10 {
		t.Errorf("40 attempts took %d entries", n)
	}
	for i, as := range w.s.Assignments("c") {
		if as.Task != uint32(i) || as.Attempt != 2 {
			t.Errorf("c runs %+v", as)
		}
	}
	if n := entries(w.cmd("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"]})); n < 5 {
		t.Errorf("30 attempts took %d entries to return", n)
	}
	stop, on := 0, 0
	for _, as := range w.s.Assignments("b") {
		if as.Stop {
			stop++
		} else {
			on++
		}
	}
	if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); stop != 10 || on != 30 || v.Counts[Assigned] != 40 {
		t.Errorf("b stops %d and goes on with %d, %v", stop, on, v.Counts)
	}
}

// TestDoubtsAreTold: events say that the task may run twice, and that it continues.
func TestDoubtsAreTold(t *testing.T) {
	w, _ := doubtWorld(t)
	var events []Event
	w.s.Observe(&events)
	w.suspect("b", true)
	w.suspect("b", false)
	w.elsewhere()
	first := w.s.index
	got := lines(events)
	for _, line := range []string{
		"task.requeued a.1 task 0+1 attempt 1 of 6 at b suspected (b is suspected, where it may run on)",
		"task.resumed a.1 task 0+1 attempt 1 of 6 at b",
		fmt.Sprintf("task.assigned a.1 task 0+1 attempt 2 of %d at c", first-1),
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	why, _ := w.s.Why(command.JobID{Site: "a", Num: 1})
	if why.Waiting != 0 {
		t.Errorf("%+v", why)
	}
}

// TestStateMachineInDoubt is TestStateMachine with sites that are suspected and heard again all the time and jobs
// most of which want to be requeued at a hint, with entries that do everything or little. In addition, events and
// views alone must show that hints are not losses, leave few attempts, and make a task run twice only where a site
// is suspected.
func TestStateMachineInDoubt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.steps = rapid.SampledFrom([]uint64{1, 100, 300, maxSteps, maxSteps}).Draw(rt, "steps")
		m := newModel(rt, b)
		n := &naiveDoubts{s: m.w.s, tasks: map[mirrorKey]*naiveTask{}}
		m.w.s.Observe(&n.events)
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 2, 1)))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.invariants(t)
				n.check(t)
			},
			"submit": m.submitImmediate, "submit2": m.submitImmediate, "suspect": m.suspect, "suspect2": m.suspect, "suspect3": m.suspect, "started": m.started,
			"complete": m.complete, "complete2": m.complete, "decline": m.seldom(m.decline), "bound": m.bound, "cancel": m.seldom(m.cancelAny), "cancel2": m.seldom(m.cancel),
			"renice": m.renice,
			"offer":  m.seldom(m.offer), "register": m.seldom(m.register), "lost": m.seldom(m.lost), "leave": m.seldom(m.leave), "forget": m.seldom(m.forget),
			"params": m.seldom(m.params), "tick": m.tick, "restore": m.restore, "raise": m.seldom(m.raise), "recover": m.seldom(m.recover),
		})
	})
}

// submitImmediate submits small jobs, most of which want to be requeued at a hint.
func (m *model) submitImmediate(t *rapid.T) {
	m.t = t
	site := m.site()
	j := m.w.job(site, rapid.Uint32Range(1, 3).Draw(t, "count"))
	j.MaxAttempts = rapid.Uint32Range(1, 3).Draw(t, "attempts")
	j.OnLoss = rapid.SampledFrom([]command.OnLoss{
		command.Immediate, command.Immediate, command.Immediate, command.Fenced,
	}).Draw(t, "onLoss")
	m.do(site, &command.Submit{Jobs: []command.JobSpec{j}})
}

// naiveDoubts follows tasks by their events.
type naiveDoubts struct {
	s      *State
	events []Event
	tasks  map[mirrorKey]*naiveTask
}

type naiveTask struct {
	job      uint64 // seq
	hints    uint32 // that made it continue elsewhere
	doubted  bool   // it waits, and its attempt is in doubt
	losses   uint32 // reported by events; others may be counted late
	requeues uint32 // for any other reason
	attempt  uint32
	ended    bool
}

func (n *naiveDoubts) check(t *rapid.T) {
	for i := range n.events {
		e := &n.events[i]
		for task := e.Task; task < e.Task+e.Count; task++ {
			n.follow(t, e, mirrorKey{e.Job, task})
		}
	}
	n.events = n.events[:0]
	runs := n.runs()
	for key, k := range n.tasks {
		if k.hints > n.s.bounds.doubts || k.attempt > 1+k.hints+k.losses+k.requeues {
			t.Fatalf("%v: attempt %d after %d hints, %d losses, %d other returns", key, k.attempt, k.hints, k.losses, k.requeues)
		}
		j := n.s.jobs.Get(k.job)
		if j == nil {
			delete(n.tasks, key)
			continue
		}
		v := n.s.viewTask(k.job, j, key.task)
		if !k.ended && (v.Losses < k.losses || v.Losses > k.losses+k.hints) {
			t.Fatalf("%v counts %d losses, its events tell of %d and %d hints", key, v.Losses, k.losses, k.hints)
		}
		waits := v.State == Queued || v.State == Withdrawn && v.Site == ""
		if at := runs[key]; len(at) > 1 || k.doubted != (waits && len(at) == 1) || v.State.Ended() && len(at) > 0 {
			t.Fatalf("%v is %v, in doubt %v, and goes on at %v", key, v.State, k.doubted, at)
		}
	}
}

// runs returns where a task continues: at sites that are not to stop it.
func (n *naiveDoubts) runs() map[mirrorKey][]string {
	out := map[mirrorKey][]string{}
	for _, x := range n.s.Sites() {
		for _, a := range n.s.Assignments(x.ID) {
			if key := (mirrorKey{a.Job, a.Task}); !a.Stop {
				out[key] = append(out[key], x.ID)
			}
		}
	}
	return out
}

func (n *naiveDoubts) follow(t *rapid.T, e *Event, key mirrorKey) {
	k := n.tasks[key]
	switch e.Kind {
	case EventJobSubmitted:
		n.tasks[key] = &naiveTask{job: n.s.findJob(e.Job)}
	case EventTaskAssigned:
		if k.doubted {
			k.hints++
		}
		k.attempt, k.doubted = e.Attempt, false
	case EventTaskResumed:
		k.doubted = false
	case EventTaskRequeued:
		switch e.End {
		case EndSuspected:
			k.doubted = true
		case EndLost, EndStopped:
			k.losses++
		default:
			k.requeues++
		}
	case EventTaskEnded:
		if k.ended {
			t.Fatalf("%v ends twice", key)
		}
		k.ended, k.doubted = true, false
	default:
	}
}
