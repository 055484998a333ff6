package fsm

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// declineAll makes a site decline everything that it was assigned, without a new offer.
func (w *world) declineAll(site string) {
	w.t.Helper()
	d := &command.Decline{Reason: "busy"}
	for _, a := range w.s.Assignments(site) {
		d.Attempts = append(d.Attempts, a.AttemptRef)
	}
	w.must(site, d)
}

// TestRestoredReplicaPicksAsALiveOne checks that jobs that came back do not hide the next job from one replica
// and show it to the other. The snapshot says which jobs a site declined, but not how the queue came about.
func TestRestoredReplicaPicksAsALiveOne(t *testing.T) {
	const n = 300
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	for range n + 1 {
		w.submit("a", w.job("a", 1))
	}
	for range n {
		w.declineAll("b")
	}
	last := w.s.Assignments("b")
	if len(last) != 1 || last[0].Job.Num != n+1 {
		t.Fatalf("b runs %+v, not job %d", last, n+1)
	}
	other, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	batch := &command.Batch{Term: 1, Commands: []command.Command{
		w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}}),
		w.cmd("b", &command.Complete{Attempts: []command.Ended{ended(last[0], command.Succeeded, 0)}}),
	}}
	for _, s := range []*State{w.s, other} {
		if _, err := s.Apply(batch); err != nil {
			t.Fatal(err)
		}
		if as := s.Assignments("b"); len(as) != 1 || as[0].Job.Num != n+2 {
			t.Errorf("b runs %+v, not job %d", as, n+2)
		}
	}
	if w.s.Hash() != other.Hash() {
		t.Fatal("the restored replica differs")
	}
}

// TestDeclinedJobsHideNoOther checks that a site with 300 free cores that declined 300 jobs gets the 301st,
// which waits behind them.
func TestDeclinedJobsHideNoOther(t *testing.T) {
	const n = 300
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", n))
	for range n {
		w.submit("a", w.job("a", 1))
	}
	w.declineAll("b")
	w.submit("a", w.job("a", 1))
	if as := w.s.Assignments("b"); len(as) != 1 || as[0].Job.Num != n+1 {
		t.Fatalf("b runs %+v, not job %d", as, n+1)
	}
	w.check()
}

// TestReturningJobPassesTheGate checks that a site that has searched past everything it declined finds an
// earlier job that waits again without a bar.
func TestReturningJobPassesTheGate(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("c", w.offering("c", 1))
	w.submit("a", w.job("a", 1)) // runs at c
	w.must("b", w.offering("b", 1))
	for range 3 {
		w.submit("a", w.job("a", 1))
		w.declineAll("b") // the search for the next one goes to the end
	}
	w.must("c", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("c")[0], command.Lost, 0)}})
	all := append(w.s.Assignments("b"), w.s.Assignments("c")...)
	if !slices.ContainsFunc(all, func(a Assignment) bool { return a.Job.Num == 1 && a.AttemptRef.Attempt == 2 }) {
		t.Fatalf("job 1 waits though b is free: %+v", all)
	}
	w.check()
}

// TestDeclineEndsTheHold checks that a machine that is reserved for a job goes to others once its site has
// declined that job.
func TestDeclineEndsTheHold(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1000
	w := newWorld(t, p, "a", "b")
	w.must("b", w.offering("b", 2))
	narrow, wide := w.job("a", 1), w.job("a", 2)
	wide.Need.MilliCPU = 2000
	w.submit("a", narrow)
	w.submit("a", wide) // its first task finds one core
	w.at(5000)
	w.apply()
	if w.s.reservations.Len() != 1 {
		t.Fatalf("%d machines are held", w.s.reservations.Len())
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Succeeded, 0)}})
	w.at(10_000)
	w.apply() // reserved again, for its second task
	w.declineAll("b")
	w.submit("a", w.job("a", 1))
	if as := w.s.Assignments("b"); len(as) != 1 || as[0].Job.Num != 3 {
		t.Fatalf("b runs %+v", as)
	}
	w.check()
}

// submitMany submits a number of jobs of one task in commands of a thousand.
func (w *world) submitMany(site string, n int) {
	w.t.Helper()
	for ; n > 0; n -= 1000 {
		var jobs []command.JobSpec
		for range min(n, 1000) {
			jobs = append(jobs, w.job(site, 1))
		}
		w.submit(site, jobs...)
	}
}

// TestBlockedSitesAreKnownWithoutASearch: before a job begins to wait, the state needs the sites from which all
// other jobs are barred. When a site returned 8000 jobs in one command, the earlier jobs were searched for each
// of them: 1.5 s.
func TestBlockedSitesAreKnownWithoutASearch(t *testing.T) {
	const n = 100
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", n))
	w.submitMany("a", n)
	w.declineAll("b")
	other, err := reborn(w.s) // its gates have not searched past anything
	if err != nil {
		t.Fatal(err)
	}
	q := other.byName["a"].lanes[0].top()
	if len(q.gates) != 1 || q.gates[0].from != 0 {
		t.Fatalf("gates %+v", q.gates)
	}
	before := other.steps.used
	if sites := other.blocked(other.byName["a"].lanes[0].class, nil); len(sites) != 1 || sites[0].name != "b" ||
		q.gates[0].from != 0 {
		t.Errorf("blocked: %d sites; gates %+v", len(sites), q.gates)
	}
	if got := other.steps.used - before; got != stepLook {
		t.Errorf("%d steps", got)
	}
}

// TestManyJobsReturnPastAGate: 20,000 jobs return in one entry to a queue that another site has searched past.
// Each return used to copy the list of those before it: 1.6 GB.
func TestManyJobsReturnPastAGate(t *testing.T) {
	const n = 20_000
	w := newWorld(t, params(), "a", "b", "c")
	w.must("c", w.offering("c", n))
	w.submitMany("a", n)
	w.must("b", w.offering("b", 1))
	w.submit("a", w.job("a", 1))
	w.declineAll("b")
	lost := w.cmd("a", &command.SiteLost{Site: "c", Incarnation: w.inc["c"], Term: w.term})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.apply(lost)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 200 {
		t.Errorf("the entry took %d MiB", mib)
	}
	if len(w.s.Assignments("b")) != 1 {
		t.Error("b is idle")
	}
	w.check()
}

// TestDeclinedByManySites makes jobs come back that twenty sites declined, and submits others behind them. For
// each of them the queue used to be searched for all these sites: 4000 jobs that 300 sites had declined took a
// second. Now each job costs a step a site.
func TestDeclinedByManySites(t *testing.T) {
	const sites, n = 20, 50
	w := newWorld(t, params(), "a", "z")
	w.submitMany("a", n)
	for i := range sites {
		x := fmt.Sprintf("s%02d", i)
		w.register(x)
		w.must(x, w.offering(x, 2*n))
		w.declineAll(x)
	}
	w.must("z", w.offering("z", n))
	before := w.s.sought
	w.declineAll("z")
	if got := w.s.sought - before; got > 0 {
		t.Errorf("%d jobs come back to their queue with %d searches of it", n, got)
	}
	if got := w.s.Steps().Used; got < n*sites {
		t.Errorf("%d jobs with %d bars each come back in %d steps", n, sites, got)
	}
	before = w.s.sought
	w.submitMany("a", n)
	if got := w.s.sought - before; got > n {
		t.Errorf("%d jobs come behind them with %d searches of their queue", n, got)
	}
	if w.s.waiting != n {
		t.Errorf("%d tasks wait, %d were declined by all", w.s.waiting, n)
	}
	w.check()
}

// TestBlockedAsksWhatWasFound makes sites each decline different jobs, so that what is found for one site may be
// barred from the next.
func TestBlockedAsksWhatWasFound(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c", "d")
	w.submitMany("a", 3)
	for i, x := range []string{"b", "c", "d"} {
		w.must(x, w.offering(x, 3))
		as := w.s.Assignments(x)
		d := &command.Decline{}
		for k, a := range as {
			if x == "d" || k != i {
				d.Attempts = append(d.Attempts, a.AttemptRef)
			}
		}
		w.must(x, d)
		w.check()
		for _, a := range w.s.Assignments(x) {
			w.must(x, &command.Complete{Attempts: []command.Ended{ended(a, command.Lost, 0)}})
		}
		w.must(x, &command.Leave{})
		w.register(x)
	}
	for _, x := range []string{"b", "c", "d"} {
		w.must(x, w.offering(x, 1))
		w.declineAll(x)
		w.check()
	}
	c := w.s.byName["a"].lanes[0].class
	var naive []string
	for _, x := range w.s.sites {
		if x.offers > 0 && !slices.ContainsFunc(c.lanes, func(l *lane) bool { _, ok := w.s.first(l, x); return ok }) {
			naive = append(naive, x.name)
		}
	}
	var got []string
	for _, x := range w.s.blocked(c, nil) {
		got = append(got, x.name)
	}
	if !slices.Equal(got, naive) {
		t.Errorf("blocked: %v, by looking at all jobs: %v", got, naive)
	}
}
