package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

func TestJobsPagesNewestFirst(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	for i := range 150 {
		site := []string{"a", "b"}[i%2]
		j := w.job(site, 1)
		j.Payload = []byte{byte(i)}
		w.submit(site, j)
	}
	w.must("b", &command.Cancel{Job: command.JobID{Site: "b", Num: 3}, Task: -1})
	read := func(f JobFilter, limit int) (got []string) {
		for before := uint64(0); ; {
			page, next := w.s.Jobs(f, before, limit)
			for _, j := range page {
				got = append(got, j.ID.String())
			}
			if next == 0 {
				return got
			}
			if next >= before && before != 0 {
				t.Fatalf("the cursor went from %d to %d", before, next)
			}
			before = next
		}
	}
	if got := read(JobFilter{}, 7); len(got) != 150 || got[0] != "b.75" || got[149] != "a.1" {
		t.Fatalf("%d jobs, %v", len(got), got)
	}
	if got := read(JobFilter{Owner: "b"}, 10); len(got) != 75 || got[74] != "b.1" {
		t.Fatalf("%d jobs of b", len(got))
	}
	if got := read(JobFilter{State: "cancelled"}, 10); fmt.Sprint(got) != "[b.3]" {
		t.Fatalf("cancelled: %v", got)
	}
	if got := read(JobFilter{Match: func(p []byte) bool { return p[0] == 4 }}, 1); fmt.Sprint(got) != "[a.3]" {
		t.Fatalf("by payload: %v", got)
	}
	var own []uint64
	for j := range w.s.OwnJobs("b") {
		own = append(own, j.ID.Num)
	}
	if len(own) != 75 || own[0] != 1 || own[74] != 75 {
		t.Fatalf("own jobs %v", own)
	}
}

// Found by review: a page of a thousand of the largest jobs was a gigabyte, copied while Apply waited.
func TestAPageOfLargeJobsIsShort(t *testing.T) {
	w := newWorld(t, params(), "a")
	const large = MaxPageBytes/4 + 1 // three fit
	for _, size := range []int{1, large, large, large, large, 1, large} {
		j := w.job("a", 1)
		j.Payload = bytes.Repeat([]byte{'x'}, size)
		w.submit("a", j)
	}
	var got [][]uint64
	for before, more := uint64(0), true; more; {
		page, next := w.s.Jobs(JobFilter{}, before, 1000)
		var nums []uint64
		for _, j := range page {
			nums = append(nums, j.ID.Num)
		}
		got = append(got, nums)
		before, more = next, next > 0
	}
	if want := "[[7 6 5 4] [3 2 1]]"; fmt.Sprint(got) != want {
		t.Errorf("pages %v, want %s", got, want)
	}
}

func TestTasksPages(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", 10))
	id := command.JobID{Site: "a", Num: 1}
	var seen []uint32
	for from := uint32(0); ; {
		page, next := w.s.Tasks(id, from, 4)
		for _, v := range page {
			seen = append(seen, v.Index)
		}
		if from = next; next == 0 {
			break
		}
	}
	if fmt.Sprint(seen) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Fatalf("%v", seen)
	}
	if page, next := w.s.Tasks(command.JobID{Site: "a", Num: 9}, 0, 4); page != nil || next != 0 {
		t.Fatal("tasks of no job")
	}
}

func TestReasonsAndFits(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	wide, only := w.job("a", 1), w.job("a", 1)
	wide.Need = command.Resources{MilliCPU: 2500, MemMiB: 64, GPU: 1}
	only.Only = []string{"zz"}
	w.submit("a", wide, only, w.job("a", 1))
	w.must("b", w.offering("b", 1))
	want := map[uint64]string{
		1: "no present site exposes a machine with 2.5 cores, 64 MiB, 1 GPU",
		2: "no present site is allowed by its sites.only and sites.not; sites.only names zz, which no site of the federation is called",
		3: "",
	}
	for num, reason := range want {
		if j, ok := w.s.Job(command.JobID{Site: "a", Num: num}); !ok || j.Reason != reason {
			t.Errorf("job %d: %q, want %q", num, j.Reason, reason)
		}
	}
	if ok, why := w.s.AnyFits(wide); ok || why != want[1] {
		t.Errorf("AnyFits: %v %q", ok, why)
	}
	if ok, _ := w.s.AnyFits(w.job("a", 1)); !ok {
		t.Error("one core fits b")
	}
	if !w.s.Fits("b", command.JobSpec{Need: command.Resources{MilliCPU: 1000}}) ||
		w.s.Fits("b", command.JobSpec{Need: command.Resources{MilliCPU: 1001}}) ||
		w.s.Fits("b", command.JobSpec{
			Need: command.Resources{MilliCPU: 1}, Only: []string{"a"},
		}) || w.s.Fits("zz", command.JobSpec{}) ||
		w.s.Fits("b", command.JobSpec{Need: command.Resources{MilliCPU: 1}, Image: true}) {
		t.Error("Fits")
	}
	if w.s.WaitingFits("a") || w.s.WaitingFits("b") {
		t.Error("nothing waits that a or b exposes a machine for")
	}
	w.submit("a", w.job("a", 1))
	if w.s.WaitingFits("a") || !w.s.WaitingFits("b") {
		t.Error("a core's task waits for b's busy core")
	}
}

// TestReasonsOfImages: reasons distinguish whether the kind, the size or the rule keeps a job from running.
func TestReasonsOfImages(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	cmd, boxed := w.job("a", 1), w.job("a", 1)
	boxed.Image = true
	wide, ruled := boxed, boxed
	wide.Need.MilliCPU, ruled.Not = 9000, []string{"b"}
	offer := func(site string, r command.Runs) {
		o := w.offering(site, 2)
		o.Machines[0].Runs = r
		w.must(site, o)
	}
	reasons := func(want map[string]command.JobSpec) {
		t.Helper()
		for reason, spec := range want {
			if ok, got := w.s.AnyFits(spec); got != reason || ok != (reason == "") {
				t.Errorf("%v %q, want %q", ok, got, reason)
			}
		}
	}
	reasons(map[string]command.JobSpec{
		"no present site runs container images on a machine with 1 core": boxed, // nothing is offered yet
		"no present site exposes a machine with 1 core":                  cmd,
	})
	offer("a", command.RunsCommands)
	reasons(map[string]command.JobSpec{"": cmd, "no present site runs container images": boxed})
	offer("b", command.RunsBoth)
	reasons(map[string]command.JobSpec{
		"": boxed, "no present site runs container images on a machine with 9 cores": wide,
		"no present site allowed by its sites.only and sites.not runs container images": ruled,
	})
	offer("a", command.RunsImages)
	offer("b", command.RunsImages)
	reasons(map[string]command.JobSpec{"": ruled, "no present site runs commands without a container image": cmd})
	if x, _ := w.s.Site("b"); x.Machines[0].Runs != command.RunsImages || x.Machines[0].Runs.String() != "images" {
		t.Errorf("%+v", x.Machines)
	}
}

func TestSiteChangeMarksAssignments(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", w.offering("a", 1))
	w.submit("b", w.job("b", 2))
	at := w.s.SiteChange("a")
	if at != w.s.Index() || w.s.SiteChange("b") != 0 || w.s.SiteChange("zz") != 0 {
		t.Fatalf("a changed at %d of %d", at, w.s.Index())
	}
	w.submit("b", w.job("b", 1))
	if w.s.SiteChange("a") != at {
		t.Fatal("a submission that only waits changes nothing at a")
	}
	w.must("b", &command.Cancel{Job: command.JobID{Site: "b", Num: 1}, Task: 0})
	if w.s.SiteChange("a") != w.s.Index() || !w.s.Assignments("a")[0].Stop {
		t.Fatal("a stop is a change")
	}
}

func TestQueueAndStats(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.at(5)
	w.submit("b", w.job("b", 3))
	w.at(9)
	two := w.job("b", 2)
	two.Need.MilliCPU, two.Priority = 2000, 3
	w.submit("b", two)
	q := w.s.Queue()
	if len(q) != 1 || q[0] != (QueueView{Site: "b", Waiting: 5, MilliCPU: 7000, OldestMs: 5, Priority: "0"}) {
		t.Fatalf("%+v", q)
	}
	w.must("a", w.offering("a", 2))
	st := w.s.Stats()
	if st != (Stats{Sites: 2, Jobs: 2, Waiting: 4, Assigned: 1, Shapes: 2, Payloads: 1, Decisions: 1}) {
		t.Fatalf("%+v", st)
	}
}
