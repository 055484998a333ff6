package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestNoMoreAttemptsThanARegistrationNames: a site is given as many tasks as its next registration can name. With
// one more it could never register again, and what it left out would run twice.
func TestNoMoreAttemptsThanARegistrationNames(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", command.MaxHeld+1))
	w.submit("a", w.job("a", command.MaxHeld+1))
	as := w.s.Assignments("b")
	if len(as) != command.MaxHeld {
		t.Fatalf("%d tasks were assigned, a registration names %d", len(as), command.MaxHeld)
	}
	held := make([]command.AttemptRef, len(as))
	for i, a := range as {
		held[i] = a.AttemptRef
	}
	if r := w.apply(w.registration("b", held, nil))[0]; r.Code != command.OK {
		t.Fatalf("the registration that names all: %v", r.Code)
	}
	w.inc["b"]++
	w.seq["b"], w.offer["b"] = 0, 0
	w.must("b", w.offering("b", command.MaxHeld+1))
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(as[0], command.Succeeded, 0)}})
	if n := len(w.s.Assignments("b")); n != command.MaxHeld {
		t.Fatalf("one ended, and %d run: the last one waits", n)
	}
	w.check()
}

// TestReturnedTasksKeepTheBoundOfShapes: requirements count while their jobs are open, so tasks that return
// cannot bring in more of them than may be submitted.
func TestReturnedTasksKeepTheBoundOfShapes(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", &command.Offer{
		Version:  1,
		Machines: []command.Machine{{Name: "m", Resources: command.Resources{MilliCPU: command.MaxMilliCPU}}},
	})
	refused := 0
	for need := range int64(MaxShapes + 10) {
		j := w.job("a", 1)
		j.Need.MilliCPU = need + 1
		r := w.do("a", &command.Submit{Jobs: []command.JobSpec{j}}) // assigned at once
		if len(r.Jobs) > 0 && r.Jobs[0] == command.TooManyShapes {
			refused++
		}
	}
	w.must("b", &command.Leave{}) // all return
	if got := len(w.s.byName["a"].lanes); got != MaxShapes || refused != 10 {
		t.Errorf("%d different requirements wait, %d were refused; the bound is %d", got, refused, MaxShapes)
	}
	w.check()
}

// TestRaiseBesideAnOlderBroker: a broker that does not know the version that the same entry raises is refused.
func TestRaiseBesideAnOlderBroker(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.s.bounds.version = Version + 1 // as of a later program
	known := w.registration("a", nil, nil)
	known.Body.(*command.Register).MaxVersion = Version + 1
	w.inc["a"], w.seq["a"] = w.apply(known)[0].Incarnation, 0
	old := w.registration("old", nil, nil)
	old.Body.(*command.Register).MaxVersion = 1
	rs := w.apply(w.cmd("a", &command.Raise{Version: Version + 1}), old)
	if rs[0].Code != command.OK || rs[1].Code != command.VersionTooNew || w.s.Version() != Version+1 {
		t.Errorf("raised: %v, registered: %v, version %d", rs[0].Code, rs[1].Code, w.s.Version())
	}
}

// TestRecordsOfOpenJobsAreBounded: jobs that a single task keeps open count as well.
func TestRecordsOfOpenJobsAreBounded(t *testing.T) {
	const most = 10
	w := newWorld(t, params(), "a", "b")
	w.s.bounds.records = share{2 * most, 1}
	w.s.join(0)
	w.must("b", w.offering("b", 100))
	for range most {
		w.submit("a", w.job("a", 4))
		c := &command.Complete{}
		for _, a := range w.s.Assignments("b") {
			if a.Task > 0 {
				c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 0))
			}
		}
		w.must("b", c)
	}
	total := 0
	for _, j := range w.s.jobs.All() {
		total += j.tasks.records.Len()
	}
	if total != most || w.s.byName["a"].use.records != most {
		t.Errorf("%d records are kept, %d counted; the bound is %d", total, w.s.byName["a"].use.records, most)
	}
	other, err := reborn(w.s)
	if err != nil || other.byName["a"].use.records != most {
		t.Errorf("%d records after a restore, %v", other.byName["a"].use.records, err)
	}
}

// TestBoundOfAttemptsHidesNoMachine: a requirement appears while a site has as many attempts as it may. Its
// machines rest and are not drawn. Once one attempt has ended, all of them count again, not only the one where it
// ran.
func TestBoundOfAttemptsHidesNoMachine(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.s.bounds.held = 2
	w.offer["b"]++
	w.must("b", &command.Offer{Version: w.offer["b"], Machines: []command.Machine{
		{Name: "m0", Resources: command.Resources{MilliCPU: 2000}},
		{Name: "m1", Resources: command.Resources{MilliCPU: 1000, GPU: 1}},
	}})
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 5000
	w.submit("a", wide) // fits nothing: both rest
	w.submit("a", w.job("a", 2))
	gpu := w.job("a", 1)
	gpu.Need.GPU = 1
	w.submit("a", gpu)
	as := w.s.Assignments("b")
	if len(as) != 2 || as[0].Machine != "m0" || as[1].Machine != "m0" {
		t.Fatalf("b runs %+v", as)
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(as[0], command.Succeeded, 0)}})
	if as = w.s.Assignments("b"); len(as) != 2 || as[1].Job.Num != gpu.Num {
		t.Errorf("job %d waits beside an idle machine: %+v", gpu.Num, as)
	}
	w.check()
}

// TestRenamedMachinesDoNotPassTheProvenWeight: a site that offers machines under new names still runs the tasks of
// the old ones; with 1000 names their weight was 2.4 times what the ledger's sums are proven for. The site gets
// more once enough of these have ended.
func TestRenamedMachinesDoNotPassTheProvenWeight(t *testing.T) {
	p := params()
	p.RateCPU, p.RateMem, p.RateGPU = command.MaxRate, command.MaxRate, command.MaxRate
	w := newWorld(t, p, "a", "b")
	j := w.job("a", 40)
	j.Need = command.Resources{
		MilliCPU: command.MaxMilliCPU / 2, MemMiB: command.MaxMemMiB / 2, GPU: command.MaxGPU / 2,
	}
	w.submit("a", j)
	for i := range 20 {
		w.offer["b"]++
		w.must("b", &command.Offer{
			Version: w.offer["b"],
			Machines: []command.Machine{{
				Name: string(rune('a' + i)),
				Resources: command.Resources{
					MilliCPU: command.MaxMilliCPU, MemMiB: command.MaxMemMiB, GPU: command.MaxGPU,
				},
			}},
		})
		w.check()
	}
	weight := int64(0)
	for _, a := range w.s.attempts.All() {
		weight += a.weight
	}
	if weight != command.MaxTaskWeight {
		t.Errorf("b runs %d tasks of weight %d, the bound of a site is %d", len(w.s.Assignments("b")), weight, int64(command.MaxTaskWeight))
	}
	for range 2 { // of the old names
		for _, a := range w.s.Assignments("b") {
			if a.Machine == "a" {
				w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 1)}})
				w.check()
				break
			}
		}
	}
	if as := w.s.Assignments("b"); len(as) != 2 || as[0].Machine != "t" || as[1].Machine != "t" {
		t.Errorf("what has ended made no room: %+v", as)
	}
}
