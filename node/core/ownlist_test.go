package core

import (
	"maps"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// checkLists compares what the lists go by with what it is counted from.
func (s *rigSite) checkLists() {
	s.rig.t.Helper()
	c := s.core
	if want := slices.Sorted(maps.Keys(c.pubs.byJob)); !slices.Equal(want, c.pubs.nums) {
		s.rig.t.Fatalf("jobs on their way are %v, listed are %v", want, c.pubs.nums)
	}
	if want := slices.Sorted(maps.Keys(c.home.jobs)); !slices.Equal(want, c.home.order) {
		s.rig.t.Fatalf("jobs at home are %v, listed are %v", want, c.home.order)
	}
	for _, w := range c.home.waiting[:c.home.stuck] {
		job := c.home.jobs[w.num]
		if job == nil || job.Tasks[w.task].State != fsm.Queued || job.Tasks[w.task].Reason != job.noPlace() || c.fitsEmpty(&job.Spec, job.refusals...) {
			s.rig.t.Fatalf("home task %v is passed over: %+v", w, job)
		}
	}
	for num, job := range c.home.jobs {
		var counts fsm.Counts
		for i := range job.Tasks {
			counts[job.Tasks[i].State]++
		}
		if counts != job.counts {
			s.rig.t.Fatalf("tasks of home job %d are %v, counted %v", num, counts, job.counts)
		}
		if held := job.summary; job.summed {
			job.summed = false
			if job.sum(); held != job.summary {
				s.rig.t.Fatalf("home job %d is summed up as %+v, want %+v", num, held, job.summary)
			}
		}
	}
}

// endedArrays is a core with n ended home jobs of so many tasks.
func endedArrays(n, tasks int) *Core {
	c := New("a", node.DefaultExposure())
	for num := range uint64(n) {
		job := &homeJob{Spec: command.JobSpec{Num: num + 1, Count: uint32(tasks)}, Tasks: make([]homeTask, tasks)}
		c.home.add(num+1, job)
		for i := range job.Tasks {
			job.Tasks[i] = homeTask{State: fsm.TaskSucceeded, Attempt: 1, StartedMs: int64(1000 + i), EndedMs: int64(9000 + i)}
			job.changed(uint32(i))
		}
	}
	return c
}

// Found by review: the view of a home array looked at all tasks for each of
// them, on the core's goroutine, and a list did so for every array.
func TestAListCostsTheCoreLittle(t *testing.T) {
	const jobs, tasks = 50, OwnSteps / 2
	c := endedArrays(jobs, tasks)
	looks, listed := 0, 0
	for below := uint64(0); looks == 0 || below > 0; looks++ {
		var got []OwnRecord
		if got, below = c.OwnRecords(below, "", 1000); len(got)*tasks > 2*OwnSteps {
			t.Fatalf("one look passed over %d tasks", len(got)*tasks)
		}
		listed += len(got)
	}
	if listed != jobs || looks != jobs/2 {
		t.Errorf("%d jobs listed by %d looks, want %d by %d", listed, looks, jobs, jobs/2)
	}
	got, rest := c.OwnRecords(0, "succeeded", 1000)
	if len(got) != jobs || rest != 0 {
		t.Fatalf("what has ended and was listed before is looked at again: %d jobs, the rest below %d", len(got), rest)
	}
	v := got[0].View("a")
	if v.ID.Num != jobs || v.State != "succeeded" || v.Counts["succeeded"] != tasks ||
		v.StartedAt != unixMs(1000) || v.EndedAt != unixMs(9000+tasks-1) {
		t.Errorf("shown as %+v", v)
	}
	if got, rest = c.OwnRecords(0, "running", 1000); len(got) != 0 || rest != 0 {
		t.Errorf("%d run, the rest below %d", len(got), rest)
	}
}

// A page goes on where the last one ended, whatever was passed over.
func TestOwnJobsAreListedOnce(t *testing.T) {
	c := endedArrays(3, 1) // 1 to 3
	for _, group := range [][]uint64{{8, 9}, {4}, {6, 7}} {
		p := &publication{}
		for _, num := range group {
			p.jobs = append(p.jobs, pendingJob{spec: command.JobSpec{Num: num, Count: 1}})
		}
		c.addPublication(p)
	}
	c.home.add(10, &homeJob{Spec: command.JobSpec{Num: 10, Count: 1}, Tasks: make([]homeTask, 1)})
	for state, want := range map[string][]uint64{"": {10, 9, 8, 7, 6, 4, 3, 2, 1}, "queued": {10, 9, 8, 7, 6, 4}, "succeeded": {3, 2, 1}} {
		for limit := 1; limit < 12; limit++ {
			var got []uint64
			for below, first := uint64(0), true; first || below > 0; first = false {
				var list []OwnRecord
				list, below = c.OwnRecords(below, state, limit)
				for i := range list {
					got = append(got, list[i].Spec.Num)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q by %d: %v, want %v", state, limit, got, want)
			}
		}
	}
}
