package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
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
func endedArrays(n, tasks int) *core {
	c := newCore("a", DefaultExposure())
	for num := range uint64(n) {
		job := &homeJob{Spec: fsm.JobSpec{Num: num + 1, Count: uint32(tasks)}, Tasks: make([]homeTask, tasks)}
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
	const jobs, tasks = 50, ownSteps / 2
	c := endedArrays(jobs, tasks)
	looks, listed := 0, 0
	for below := uint64(0); looks == 0 || below > 0; looks++ {
		var got []ownRecord
		if got, below = c.ownRecords(below, "", 1000); len(got)*tasks > 2*ownSteps {
			t.Fatalf("one look passed over %d tasks", len(got)*tasks)
		}
		listed += len(got)
	}
	if listed != jobs || looks != jobs/2 {
		t.Errorf("%d jobs listed by %d looks, want %d by %d", listed, looks, jobs, jobs/2)
	}
	got, rest := c.ownRecords(0, "succeeded", 1000)
	if len(got) != jobs || rest != 0 {
		t.Fatalf("what has ended and was listed before is looked at again: %d jobs, the rest below %d", len(got), rest)
	}
	v := got[0].view("a")
	if v.ID.Num != jobs || v.State != "succeeded" || v.Counts["succeeded"] != tasks ||
		v.StartedAt != unixMs(1000) || v.EndedAt != unixMs(9000+tasks-1) {
		t.Errorf("shown as %+v", v)
	}
	if got, rest = c.ownRecords(0, "running", 1000); len(got) != 0 || rest != 0 {
		t.Errorf("%d run, the rest below %d", len(got), rest)
	}
}

// A page goes on where the last one ended, whatever was passed over.
func TestOwnJobsAreListedOnce(t *testing.T) {
	c := endedArrays(3, 1) // 1 to 3
	for _, group := range [][]uint64{{8, 9}, {4}, {6, 7}} {
		p := &publication{}
		for _, num := range group {
			p.jobs = append(p.jobs, pendingJob{spec: fsm.JobSpec{Num: num, Count: 1}})
		}
		c.addPublication(p)
	}
	c.home.add(10, &homeJob{Spec: fsm.JobSpec{Num: 10, Count: 1}, Tasks: make([]homeTask, 1)})
	for state, want := range map[string][]uint64{"": {10, 9, 8, 7, 6, 4, 3, 2, 1}, "queued": {10, 9, 8, 7, 6, 4}, "succeeded": {3, 2, 1}} {
		for limit := 1; limit < 12; limit++ {
			var got []uint64
			for below, first := uint64(0), true; first || below > 0; first = false {
				var list []ownRecord
				list, below = c.ownRecords(below, state, limit)
				for i := range list {
					got = append(got, list[i].spec.Num)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q by %d: %v, want %v", state, limit, got, want)
			}
		}
	}
}

// A filter that matches next to nothing walks on in looks of a bounded size.
func TestAFilterThatMatchesLittle(t *testing.T) {
	a := startSites(t, 1)[0]
	const jobs = ownSteps*ownLooks + 10
	done := make(chan struct{})
	if !a.post(askEvent(func(c *core) {
		p := &publication{sent: true, since: time.Now().Add(time.Hour)}
		for num := range uint64(jobs) {
			p.jobs = append(p.jobs, pendingJob{spec: fsm.JobSpec{Num: num + 1, Count: 1, Payload: []byte(`{"name":"x"}`)}})
		}
		p.jobs[4].spec.Payload = []byte(`{"name":"rare"}`)
		c.addPublication(p)
		close(done)
	})) {
		t.Fatal("the broker stops")
	}
	<-done
	q := JobQuery{Limit: 10, Name: "rare"}
	own, err := a.ownPage(t.Context(), q, cursor{})
	if err != nil || len(own.jobs) != 0 || own.rest == 0 {
		t.Fatalf("a page of %d jobs, the rest below %d, %v", len(own.jobs), own.rest, err)
	}
	page, err := a.Jobs(t.Context(), q) // passes over the empty page
	if err != nil || len(page.Items) != 1 || page.Items[0].ID.Num != 5 || page.Next != "" {
		t.Errorf("found %+v, %v", page, err)
	}
}

// Found by review: a thousand large jobs at home made a page of a gigabyte.
func TestAPageOfLargeOwnJobsIsShort(t *testing.T) {
	a := startSites(t, 1)[0]
	payload := []byte(`{"name":"` + strings.Repeat("x", fsm.MaxPageBytes/4) + `"}`) // three fit
	done := make(chan struct{})
	if !a.post(askEvent(func(c *core) {
		defer close(done)
		p := &publication{sent: true, since: time.Now().Add(time.Hour)}
		for num := range uint64(7) {
			p.jobs = append(p.jobs, pendingJob{spec: fsm.JobSpec{Num: num + 1, Count: 1, Payload: payload}})
		}
		c.addPublication(p)
	})) {
		t.Fatal("the broker stops")
	}
	<-done
	for _, q := range []JobQuery{{Limit: 1000}, {Limit: 1000, Name: "x"}} {
		var got [][]uint64
		for more := true; more; more = q.Cursor != "" {
			page, err := a.Jobs(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var nums []uint64
			for _, j := range page.Items {
				nums = append(nums, j.ID.Num)
			}
			got, q.Cursor = append(got, nums), page.Next
		}
		if want := "[[7 6 5] [4 3 2] [1]]"; fmt.Sprint(got) != want {
			t.Errorf("name %q: pages %v, want %s", q.Name, got, want)
		}
	}
}

// Found by review: where one of the lists was cut short, older jobs of the
// other one came before its next ones.
func TestMergedPagesAreNewestFirst(t *testing.T) {
	fed, own := []int{100, 90, 85, 40, 10}, []int{95, 30, 20, 5}
	part := func(times []int, before uint64, n int) (page []listed, rest uint64) {
		for _, at := range times {
			if before > 0 && uint64(at) >= before {
				continue
			}
			if len(page) == n {
				return page, page[n-1].place
			}
			page = append(page, listed{Job{SubmittedAt: time.Unix(int64(at), 0)}, uint64(at)})
		}
		return page, 0
	}
	for fedSize := 1; fedSize < 6; fedSize++ {
		for ownSize := 1; ownSize < 6; ownSize++ {
			var got []int64
			next := ""
			for pages := 0; pages == 0 || next != ""; pages++ {
				cur, err := parseCursor(next)
				if err != nil || pages > 20 {
					t.Fatalf("page %d after %q: %v", pages, next, err)
				}
				var theirs []listed
				var mine ownPage
				fedNext := uint64(0)
				if !cur.fedDone {
					theirs, fedNext = part(fed, cur.seq, fedSize)
				}
				if !cur.ownDone {
					mine.jobs, mine.rest = part(own, cur.num, ownSize)
				}
				page := merge(theirs, mine, fedNext, 3, cur)
				for _, j := range page.Items {
					got = append(got, j.SubmittedAt.Unix())
				}
				next = page.Next
			}
			if want := []int64{100, 95, 90, 85, 40, 30, 20, 10, 5}; !slices.Equal(got, want) {
				t.Errorf("by %d and %d: %v, want %v", fedSize, ownSize, got, want)
			}
		}
	}
}
