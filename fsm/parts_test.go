package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestAQueueHoldsWhatWaits: a head that nobody can run must not keep what is cancelled behind it.
func TestAQueueHoldsWhatWaits(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", 1))
	for range 1000 {
		w.submit("a", w.job("a", 1))
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: w.num["a"]}, Task: -1})
	}
	q := w.s.byName["a"].lanes[0].top()
	if n := q.seqs.Len(); n != 1 {
		t.Fatalf("%d entries for one waiting job", n)
	}
	w.check()
}

// TestStuckWorkCostsLaterEntriesNothing: machines that cannot run a wide job are not tried again for every narrow
// one.
func TestStuckWorkCostsLaterEntriesNothing(t *testing.T) {
	w := newWorld(t, params(), "a")
	cores := make([]int64, 500)
	for i := range cores {
		cores[i] = 2
	}
	w.must("a", w.offering("a", cores...))
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 64_000
	w.submit("a", wide)
	w.submit("a", w.job("a", 3))
	if got := len(w.s.Assignments("a")); got != 3 {
		t.Fatalf("%d assigned, want 3", got)
	}
	x := w.s.byName["a"]
	if x.free.Total() != 0 || x.stock.Total() != (1000-3)*1000 {
		t.Fatalf("%d of %d milli-cores would be tried again", x.free.Total(), x.stock.Total())
	}
	w.check()
}

// TestBigArrayStaysSmall: a million tasks remain a few runs while they come and go.
func TestBigArrayStaysSmall(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", command.MaxCount))
	w.must("a", w.offering("a", 100))
	for range 20 {
		var c command.Complete
		for i, a := range w.s.Assignments("a") {
			if i%7 != 0 {
				c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 0))
			}
		}
		w.must("a", &c)
	}
	j := w.s.jobs.Get(1)
	if n := j.tasks.runs.Len(); n > 100 || j.tasks.records.Len() != 0 {
		t.Fatalf("%d runs, %d records", n, j.tasks.records.Len())
	}
	v, _ := w.s.Job(command.JobID{Site: "a", Num: 1})
	if v.Counts[TaskSucceeded] < 1000 ||
		v.Counts[Queued]+v.Counts[Assigned]+v.Counts[TaskSucceeded] != command.MaxCount {
		t.Fatalf("%v", v.Counts)
	}
	if n := len(snapshotOf(t, w.s)); n > 20_000 {
		t.Fatalf("the snapshot takes %d bytes", n)
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 999_999})
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	if v, _ = w.s.Job(command.JobID{Site: "a", Num: 1}); v.Counts[Queued] != 0 || v.Counts[Stopping] != 100 {
		t.Fatalf("%v", v.Counts)
	}
}

// TestRecordsAreBounded: over all ended jobs the oldest lose their details first.
func TestRecordsAreBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.must("a", w.offering("a", 30))
	for range 4 {
		w.submit("a", w.job("a", 30))
		var c command.Complete
		for _, a := range w.s.Assignments("a") {
			c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 0))
		}
		w.must("a", &c)
	}
	w.s.trim(w.s.sites[0], 65)
	for num, kept := range map[uint64]bool{1: false, 2: false, 3: true, 4: true} {
		v, _ := w.s.Tasks(command.JobID{Site: "a", Num: num}, 0, 1)
		if v[0].State != TaskSucceeded || (v[0].Site != "") != kept {
			t.Errorf("job %d: %+v, kept %v", num, v[0], kept)
		}
	}
	s, err := reborn(w.s)
	if err != nil || s.sites[0].use.records != 60 {
		t.Fatalf("%v, %d records, want 60", err, s.sites[0].use.records)
	}
	w.submit("a", w.job("a", 1)) // a job without records does not stop the next trim
	a, b := s.sites[0], w.s.sites[0]
	w.s.trim(b, 30)
	if s.trim(a, 30); a.use.records != 30 || b.use.records != 30 {
		t.Fatalf("%d and %d records, want 30", a.use.records, b.use.records)
	}
}
