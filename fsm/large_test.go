package fsm

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestRestoreTakesACutMatchAmongVeryMuch: a site may have more waiting than ranks count, such as eleven jobs of a
// million tasks of a million cores. The snapshot holds what waited when a cut match began; it used to be refused.
func TestRestoreTakesACutMatchAmongVeryMuch(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.use("a", sched.Alone)
	for range sched.MaxUnits/(command.MaxCount*command.MaxMilliCPU/1000) + 1 {
		j := w.job("a", command.MaxCount)
		j.Need.MilliCPU = command.MaxMilliCPU
		w.submit("a", j)
	}
	w.submit("b", w.job("b", 5))
	w.s.bounds.steps = 1
	offer := []command.Command{w.cmd("b", w.offering("b", 1, 1, 1, 1))}
	if _, err := w.s.Apply(&command.Batch{Term: w.term, Elapsed: w.base, Commands: offer}); err != nil {
		t.Fatal(err)
	}
	if w.s.phase != cut {
		t.Fatalf("the match is not cut: %d", w.s.phase)
	}
	if _, err := reborn(w.s); err != nil {
		t.Error(err)
	}
}

// TestAPolicyCountsReturnedTasksWhenItBegins: the returned tasks of a job, perhaps a million, are examined one by
// one, and used to be counted as one job.
func TestAPolicyCountsReturnedTasksWhenItBegins(t *testing.T) {
	const tasks = 3000
	w := newWorld(t, params(), "a", "b")
	w.submit("a", w.job("a", tasks))
	w.must("b", w.offering("b", tasks))
	w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term})
	w.use("a", sched.Alone)
	if used := w.s.Steps().Used; used < tasks {
		t.Errorf("%d steps for %d returned tasks", used, tasks)
	}
	w.check()
}

// TestRecordsAreSoughtWithoutCopies: a site's ended jobs without records are skipped when room is made for a
// record. After each Restore every one of them, perhaps half a million, used to be copied once.
func TestRecordsAreSoughtWithoutCopies(t *testing.T) {
	const jobs = 2000
	w := newWorld(t, params(), "a", "b")
	w.withQuotas(func(b *bounds) { b.records = share{2, 2} })
	for range jobs {
		j := w.job("a", 1)
		w.submit("a", j)
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: -1})
	}
	w.submit("a", w.job("a", 4))
	w.must("b", w.offering("b", 4))
	as := w.s.Assignments("b")
	for _, a := range as[:2] {
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 1)}})
	}
	w.s.Snapshot().Release() // what is changed now is copied first
	c := w.cmd("b", &command.Complete{Attempts: []command.Ended{ended(as[2], command.Succeeded, 1)}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.apply(c)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 200<<10 {
		t.Errorf("one end copies %d KiB among %d ended jobs without records", got>>10, jobs)
	}
	w.check()
}

// TestAPageLooksAtABoundedNumberOfMachines: finding out why a job runs nowhere examines all machines, for each
// requirement. A page of jobs with 256 of them delayed entries by half a second among 100,000 machines.
func TestAPageLooksAtABoundedNumberOfMachines(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	o := w.offering("b")
	for i := range command.MaxMachines {
		o.Machines = append(o.Machines, command.Machine{
			Name: fmt.Sprintf("m%05d", i), Resources: command.Resources{MilliCPU: 1000},
		})
	}
	w.must("b", o)
	for i := range MaxShapes {
		j := w.job("a", 1)
		j.Need.MilliCPU = 2000 + int64(i)
		w.submit("a", j)
	}
	seen, before, pages := 0, uint64(0), 0
	for more := true; more; pages++ {
		var views []JobView
		views, before = w.s.Jobs(JobFilter{}, before, 1000)
		if most := maxPageLooks/command.MaxMachines + 1; len(views) > most {
			t.Fatalf("a page tells of %d requirements, at most %d were to be", len(views), most)
		}
		seen, more = seen+len(views), before > 0
	}
	if seen != MaxShapes {
		t.Errorf("%d pages tell of %d jobs", pages, seen)
	}
}
