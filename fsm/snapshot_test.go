package fsm

import (
	"bytes"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestSnapshotBesideApply writes a snapshot while entries change everything in it (run it with -race), and
// finds the state of which it was taken.
func TestSnapshotBesideApply(t *testing.T) {
	w := busy(t)
	for range 30 {
		f, want := w.s.Snapshot(), w.s.Hash()
		done := make(chan []byte)
		go func() {
			var b bytes.Buffer
			if err := f.Write(&b); err != nil {
				t.Error(err)
			}
			done <- b.Bytes()
		}()
		w.at(w.base + 20)
		w.churn()
		r, err := Restore(bytes.NewReader(<-done))
		if err != nil {
			t.Fatal(err)
		}
		if r.Hash() != want || w.s.Hash() == want {
			t.Fatalf("entry %d: the snapshot is not of its moment", w.s.Index())
		}
	}
}

// churn ends, fails, declines, cancels and submits at once.
func (w *world) churn() {
	w.must("a", w.offering("a", 3, 2, 1))
	w.submit("c", w.job("c", 5), w.job("c", 1))
	as := w.s.Assignments("a")
	w.must("a", &command.Started{Attempts: []command.StartedAttempt{
		{AttemptRef: as[0].AttemptRef, DelayMs: 3}, {AttemptRef: as[1].AttemptRef, DelayMs: 3},
	}})
	w.must("a", &command.Complete{Attempts: []command.Ended{
		ended(as[0], command.Succeeded, 9), ended(as[1], command.Failed, 9),
	}})
	w.must("a", &command.Decline{Attempts: []command.AttemptRef{as[2].AttemptRef}})
	w.must("c", &command.Cancel{Job: command.JobID{Site: "c", Num: w.num["c"]}, Task: -1})
	w.must("a", &command.Usage{
		Batch: w.s.byName["a"].usageBatch + 1,
		Rows:  []command.UsageRow{{Job: 1, Need: command.Resources{MilliCPU: 1}, RunMs: 2}},
	})
	w.register("b")
	w.must("b", w.offering("b", 2))
}

func TestViewsAreCopies(t *testing.T) {
	w := busy(t)
	before := w.s.Hash()
	jobs, _ := w.s.Jobs(JobFilter{}, 0, 100)
	for _, j := range jobs {
		j.Spec.Payload = append(j.Spec.Payload[:0], "scribble"...)
		for i := range j.Spec.Only {
			j.Spec.Only[i] = "scribble"
		}
		for i := range j.Spec.Not {
			j.Spec.Not[i] = "scribble"
		}
	}
	for _, x := range w.s.Sites() {
		for _, a := range w.s.Assignments(x.ID) {
			a.Payload[0] = 'X'
		}
		for i := range x.Machines {
			x.Machines[i].Name = "scribble"
		}
	}
	if w.s.Hash() != before {
		t.Fatal("a view points into the state")
	}
}
