package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

func TestSubmitOfferMatchComplete(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 2))
	w.submit("a", w.job("a", 3))
	got := w.s.Assignments("b")
	if len(got) != 2 || got[0].Task != 0 || got[1].Task != 1 || got[0].Attempt != 1 || got[0].Token != w.s.Index() {
		t.Fatalf("assignments %+v", got)
	}
	w.at(1000)
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(got[0], command.Succeeded, 1000)}})
	got = w.s.Assignments("b")
	if len(got) != 2 || got[1].Task != 2 || got[1].Token != w.s.Index() {
		t.Fatalf("the completion's entry should assign task 2: %+v", got)
	}
	w.at(2000)
	w.must("b", &command.Complete{Attempts: []command.Ended{
		ended(got[0], command.Succeeded, 1500), ended(got[1], command.Failed, 500),
	}})
	j, _ := w.s.Job(command.JobID{Site: "a", Num: 1})
	if j.State != TaskFailed || j.Counts[TaskSucceeded] != 2 || j.EndedMs != 2000 {
		t.Fatalf("job %+v", j)
	}
	w.check()
	if _, err := reborn(w.s); err != nil {
		t.Fatal(err)
	}
	l := w.s.Ledger()
	if l.Sites[0].Priority != "-3000000" || l.Sites[1].Priority != "3000000" || len(l.Matrix) != 1 || l.Matrix[0].Tasks != 3 {
		t.Fatalf("ledger %+v", l)
	}
}

// TestARunOfNoTimeHasStarted checks that an end that is reported before the start says whether there was a
// start, however short the run was; 0 ms are not charged.
func TestARunOfNoTimeHasStarted(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 2))
	w.submit("a", w.job("a", 2))
	got := w.s.Assignments("b")
	w.at(1000)
	ran, never := ended(got[0], command.Succeeded, 0), ended(got[1], command.Failed, 0)
	ran.Ran, ran.DelayMs = true, 7
	w.must("b", &command.Complete{Attempts: []command.Ended{ran, never}})
	tasks, _ := w.s.Tasks(command.JobID{Site: "a", Num: 1}, 0, 2)
	if at := tasks[0].AssignedMs + 7; tasks[0].StartedMs != at || tasks[0].EndedMs != at || tasks[1].StartedMs != -1 {
		t.Fatalf("tasks %+v, want the first started and ended at %d, the second never started", tasks, at)
	}
	if j, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); j.StartedMs != tasks[0].StartedMs {
		t.Fatalf("job started at %d, want %d", j.StartedMs, tasks[0].StartedMs)
	}
	w.check()
	if l := w.s.Ledger(); l.Sites[0].Priority != "0" || l.Sites[1].Priority != "0" {
		t.Fatalf("a run of 0 ms was charged: %+v", l)
	}
}
