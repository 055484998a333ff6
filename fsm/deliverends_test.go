package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Nobody wants the outputs of what is cancelled: it ends at once, and its site may drop them. An attempt that succeeds
// after it was asked to stop ends its task as cancelled, too, whichever comes first.
func TestCancelEndsADelivery(t *testing.T) {
	for _, task := range []int64{-1, 0} {
		w := deliveringWorld(t)
		ref := w.succeeds("b")
		entry := w.s.Index()
		if !w.s.OutputsWanted("b", ref) || w.s.OutputsWanted("c", ref) || w.s.OutputsWanted("nobody", ref) {
			t.Error("b keeps what a wants")
		}
		w.must("a", &command.Cancel{Job: firstJob, Task: task})
		v := w.taskOf(firstJob, 0)
		if v.State != TaskCancelled || v.Reason != "cancelled at a" || w.s.OutputsWanted("b", ref) ||
			w.s.OutputsChange("b") != w.s.Index() {
			t.Errorf("cancelled task %d: %+v", task, v)
		}
		if all, whole := w.s.DeliveriesSince("a", entry); len(all) != 0 || !whole {
			t.Errorf("a is told %v, whole %v", all, whole)
		}
		w.must("a", delivered(ref, command.DeliveryOK, ""))
		if v := w.taskOf(firstJob, 0); v.State != TaskCancelled {
			t.Errorf("a late word: %+v", v)
		}
		if task < 0 {
			w.succeeds("b") // is to be stopped
			if j, _ := w.s.Job(firstJob); j.State != TaskCancelled || j.Counts[TaskCancelled] != 2 {
				t.Errorf("%v, %v", j.State, j.Counts)
			}
		}
		w.restored()
		w.check()
	}
}

// The loss, the leave or the ban of the site that has run a task changes nothing: what was fetched needs no fence. Its
// return changes nothing either, whatever its registration names.
func TestDeliveriesOutliveTheirSite(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := deliveringWorld(t)
		ref := w.succeeds("b")
		if leaves {
			w.must("b", &command.Leave{})
		} else {
			w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term})
		}
		v := w.taskOf(firstJob, 0)
		if !v.Delivering || v.Losses != 0 || v.Reason != "it has run at b, which is away with its outputs: a waits for them, "+
			"and has it run again if they do not come" {
			t.Errorf("b is away: %+v", v)
		}
		why, _ := w.s.Why(firstJob)
		if why.Delivering != 1 || why.Waiting != 1 || why.DeliveringWhy != "task 0: "+v.Reason {
			t.Errorf("why: %d deliver, %q", why.Delivering, why.DeliveringWhy)
		}
		w.restored()
		for _, words := range [][2][]command.AttemptRef{{nil, nil}, {{ref}, nil}, {nil, {ref}}} {
			r := w.apply(w.registration("b", words[0], words[1]))[0]
			w.inc["b"], w.seq["b"] = r.Incarnation, 0
			v := w.taskOf(firstJob, 0)
			if r.Code != command.OK || !v.Delivering || v.Losses != 0 || !w.s.OutputsWanted("b", ref) {
				t.Errorf("b is back with %v: %v, %+v", words, r.Code, v)
			}
			w.check()
		}
		w.must("a", delivered(ref, command.DeliveryLost, "b answers that it has nothing"))
		if v := w.taskOf(firstJob, 0); v.State != Queued || v.Losses != 1 {
			t.Errorf("%+v", v)
		}
		w.check()
	}
}

// A banned site's outputs are still the owner's to fetch or give up.
func TestDeliveriesOutliveABan(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("b", w.offering("b", 1))
	j := w.job("a", 1)
	j.Delivers = true
	w.submit("a", j)
	ref := w.succeeds("b")
	w.must("a", &command.Motion{What: command.MotionBan, Site: "b"})
	for _, m := range w.s.Roster().Motions {
		for _, elector := range w.s.Electors() {
			w.do(elector, &command.Vote{Motion: m.Number, Yes: true})
		}
	}
	if m, _ := w.s.Member("b"); !m.Banned {
		t.Fatal("b is not banned")
	}
	if v := w.taskOf(firstJob, 0); !v.Delivering || v.Losses != 0 {
		t.Errorf("%+v", v)
	}
	w.must("a", delivered(ref, command.DeliveryOK, ""))
	if v := w.taskOf(firstJob, 0); v.State != TaskSucceeded {
		t.Errorf("%+v", v)
	}
}

// While its owner is away a task stays where it is; what succeeds meanwhile waits, too. When the owner's departure is
// over, all of it ends as lost, and so does what succeeds later.
func TestDeliveriesWaitForTheirOwner(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count = 3 })
	w.must("c", w.offering("c", 1))
	first := w.succeeds("b")
	w.must("a", &command.Leave{})
	second := w.succeeds("b")
	if r := w.do("a", delivered(first, command.DeliveryOK, "")); r.Code == command.OK {
		t.Error("a says something while it is away")
	}
	v := w.taskOf(firstJob, 0)
	if v.State != Running || !v.Delivering || v.Reason != "it has run at b, which keeps its outputs: its owner a is away" ||
		!w.s.OutputsWanted("b", second) {
		t.Errorf("a is away: %+v", v)
	}
	w.restored()
	w.register("a")
	if got := w.s.Deliveries("a"); len(got) != 2 || got[0].AttemptRef != first || got[1].AttemptRef != second {
		t.Errorf("a is back, and is to fetch %v", got)
	}
	w.must("a", delivered(first, command.DeliveryOK, ""))
	w.must("a", &command.Forget{Site: "a"})
	late := w.succeeds("c")
	for i, want := range []TaskState{TaskSucceeded, TaskLost, TaskLost} {
		if v := w.taskOf(firstJob, uint32(i)); v.State != want || want == TaskLost && v.Reason != ownerLeft {
			t.Errorf("task %d is %+v", i, v)
		}
	}
	if w.s.OutputsWanted("b", second) || w.s.OutputsWanted("c", late) || len(w.s.Deliveries("a")) > 0 {
		t.Error("somebody keeps outputs for an owner that is gone")
	}
	if j, _ := w.s.Job(firstJob); j.State != TaskLost {
		t.Errorf("the job is %v", j.State)
	}
	w.restored()
	w.check()
}

// A new epoch keeps what is delivering: its owner says again what it had said in a lost entry.
func TestDeliveriesOutliveAnEpoch(t *testing.T) {
	w := deliveringWorld(t)
	ref := w.succeeds("b")
	w.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Recover{Epoch: 1}})
	w.restored()
	if got := w.s.Deliveries("a"); len(got) != 1 || got[0].AttemptRef != ref {
		t.Errorf("a is to fetch %v", got)
	}
	w.must("a", delivered(ref, command.DeliveryOK, ""))
	if v := w.taskOf(firstJob, 0); v.State != TaskSucceeded {
		t.Errorf("%+v", v)
	}
	w.check()
}

// An attempt that a hint made overlap succeeds first: it is delivering, the later one is to be stopped, and nothing of
// that one counts. If the outputs are lost, the next attempt has a number that none had.
func TestAnOvertakingAttemptDelivers(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count, j.OnLoss = 1, command.Immediate })
	early := w.s.Assignments("b")[0]
	w.must("c", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true})
	w.must("c", w.offering("c", 1))
	later := w.s.Assignments("c")[0]
	if later.Attempt != 2 || !w.s.OutputsWanted("b", early.AttemptRef) {
		t.Fatalf("%+v", later)
	}
	ref := w.succeeds("b")
	if v := w.taskOf(firstJob, 0); ref != early.AttemptRef || !v.Delivering || v.Attempt != 1 || v.Site != "b" {
		t.Errorf("b was first: %+v", v)
	}
	if a := w.s.Assignments("c"); len(a) != 1 || !a[0].Stop {
		t.Errorf("c runs %+v", a)
	}
	w.restored()
	w.check()
	w.must("c", w.offering("c", 2)) // room beside what it has to stop
	w.must("a", delivered(ref, command.DeliveryLost, ""))
	w.check()
	if v := w.taskOf(firstJob, 0); v.State != Assigned || v.Attempt != 3 || v.Losses != 1 {
		t.Errorf("the next attempt: %+v", v)
	}
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(later, command.Succeeded, 5)}})
	if v := w.taskOf(firstJob, 0); v.State != Assigned || v.Attempt != 3 {
		t.Errorf("a success of what was overtaken: %+v", v)
	}
	w.check()
}

// A second success does not end a task whose first is delivering, and a loss of what may run elsewhere is counted.
func TestALaterSuccessWhileDelivering(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count, j.OnLoss = 1, command.Immediate })
	early := w.s.Assignments("b")[0]
	w.must("c", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true})
	w.must("c", w.offering("c", 1))
	ref := w.succeeds("c")
	before := w.taskOf(firstJob, 0)
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(early, command.Lost, 0)}})
	after := w.taskOf(firstJob, 0)
	if !after.Delivering || after.Token != ref.Token || after.Losses != before.Losses+1 {
		t.Errorf("b lost it: %+v", after)
	}
	w.restored()
	w.check()
	w.must("a", delivered(ref, command.DeliveryOK, ""))
	if v := w.taskOf(firstJob, 0); v.State != TaskSucceeded || v.Attempt != 2 || v.Losses != 1 {
		t.Errorf("%+v", v)
	}
}

// An owner that leaves too many outputs where they are loses what comes beyond: it would cost everybody's memory. What
// is charged stays charged.
func TestTooManyDeliveriesAreLost(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.s.bounds.delivering = share{1, 1}
	w.s.limits = w.s.bounds.limitsOf(w.s.members)
	w.must("b", w.offering("b", 2))
	j := w.job("a", 2)
	j.Delivers, j.OnLoss = true, command.Never
	w.submit("a", j)
	w.at(1000)
	first := w.succeeds("b")
	w.succeeds("b")
	v := w.taskOf(firstJob, 1)
	if v.State != TaskLost || v.Reason != "its owner has not fetched the outputs of 1 tasks: more may not wait for it" {
		t.Errorf("%+v", v)
	}
	if cell := w.s.Ledger().Matrix[0]; cell.Tasks != 2 {
		t.Errorf("%d runs are charged", cell.Tasks)
	}
	if q, _ := w.s.Quotas("a"); q.Uses[0].Used != 1 { // what is delivering is open
		t.Errorf("a has %d open tasks", q.Uses[0].Used)
	}
	w.must("a", delivered(first, command.DeliveryOK, ""))
	if j, _ := w.s.Job(firstJob); j.State != TaskLost || j.Counts[TaskSucceeded] != 1 {
		t.Errorf("%v %v", j.State, j.Counts)
	}
}

// Deliveries are told in the order in which they began, and those of the owner's own word are not told again.
func TestDeliveriesSince(t *testing.T) {
	w := deliveringWorld(t, func(j *command.JobSpec) { j.Count = 4 })
	first := w.succeeds("b")
	entry := w.s.Index()
	second := w.succeeds("b")
	if got, whole := w.s.DeliveriesSince("a", entry); whole || len(got) != 1 || got[0].AttemptRef != second {
		t.Errorf("since entry %d: %v, %v", entry, got, whole)
	}
	w.must("a", delivered(first, command.DeliveryOK, ""))
	got, whole := w.s.DeliveriesSince("a", w.s.Index()-1)
	if whole || len(got) != 0 || w.s.DeliveryChange("a") != w.s.Index() {
		t.Errorf("after the owner's own word: %v, %v", got, whole)
	}
	if got, whole := w.s.DeliveriesSince("a", w.s.Index()+1); !whole || len(got) != 1 {
		t.Errorf("since an entry to come: %v, %v", got, whole)
	}
	if got, whole := w.s.DeliveriesSince("z", 0); !whole || got != nil || w.s.Deliveries("z") != nil ||
		w.s.DeliveryChange("z")+w.s.OutputsChange("z") > 0 {
		t.Errorf("of an unknown site: %v, %v", got, whole)
	}
	w.restored()
	if got, whole := w.s.DeliveriesSince("a", entry); !whole || len(got) != 1 {
		t.Errorf("of a restored state: %v, %v", got, whole)
	}
}
