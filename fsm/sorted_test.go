package fsm

import (
	"iter"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

func collect[T any](all iter.Seq[*T]) (out []T) {
	for v := range all {
		out = append(out, *v)
	}
	return out
}

func values[T any](l *store.Sorted[T]) []T { return collect(l.All()) }

// TestNoListOfAJobIsOneArray makes 2000 tasks of a job end apart, while others return, and as many jobs of one task
// return and be barred: each list is in pieces. With one array of 40,000 ends, into which the reports of one entry
// inserted 25,000, that took 0.4 s of the entry.
func TestNoListOfAJobIsOneArray(t *testing.T) {
	const n = 2000
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 2*n))
	w.submit("a", w.job("a", 2*n))
	c := &command.Complete{}
	for i, a := range w.s.Assignments("b") {
		if i%2 == 0 {
			e := ended(a, command.Failed, 1)
			e.ExitCode = int32(i)
			c.Attempts = append(c.Attempts, e)
		}
	}
	w.must("b", c)
	w.must("b", &command.Leave{})
	w.check()
	set := w.s.jobs.Get(1).tasks
	for name, list := range map[string]bool{
		"ends": set.runs.InPieces(), "records": set.records.InPieces(), "returned tasks": set.back().InPieces(),
	} {
		if !list {
			t.Errorf("%d %s are one array", n, name)
		}
	}
	if set.runs.Len() != n || set.records.Len() != n || set.back().Len() != n {
		t.Errorf("%d runs, %d records, %d wait again", set.runs.Len(), set.records.Len(), set.back().Len())
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.submitMany("a", n)
	w.must("c", w.offering("c", n))
	w.declineAll("c")
	w.check()
	q := w.s.byName["a"].lanes[0].top()
	if !q.seqs.InPieces() || !w.s.byName["a"].openSeqs.InPieces() || q.seqs.Len() != n {
		t.Errorf("%d jobs wait in one array", q.seqs.Len())
	}
	w.reborn()
}

// TestDepartureLooksAtOwnJobs makes a site with one waiting job leave permanently, next to one that has many: only
// its own jobs are work.
func TestDepartureLooksAtOwnJobs(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	for range 500 {
		w.must("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	}
	w.must("b", &command.Submit{Jobs: []command.JobSpec{w.job("b", 1)}})
	w.must("b", &command.Forget{Site: "b"})
	if n := w.s.Steps().Used; n >= 500 || w.s.byName["b"].waiting > 0 {
		t.Fatalf("it took %d steps", n)
	}
}
