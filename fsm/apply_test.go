package fsm

import (
	"testing"
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
	w.must("b", &Complete{Attempts: []Ended{ended(got[0], Succeeded, 1000)}})
	got = w.s.Assignments("b")
	if len(got) != 2 || got[1].Task != 2 || got[1].Token != w.s.Index() {
		t.Fatalf("the completion's entry should assign task 2: %+v", got)
	}
	w.at(2000)
	w.must("b", &Complete{Attempts: []Ended{ended(got[0], Succeeded, 1500), ended(got[1], Failed, 500)}})
	j, _ := w.s.Job(JobID{"a", 1})
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
