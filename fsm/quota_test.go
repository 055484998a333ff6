package fsm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// withQuotas gives a world small quotas.
func (w *world) withQuotas(set func(b *bounds)) {
	set(&w.s.bounds)
	w.s.join(0)
}

// codes submits jobs and returns the result for each.
func (w *world) codes(site string, jobs ...command.JobSpec) []command.Code {
	w.t.Helper()
	r := w.must(site, &command.Submit{Jobs: jobs})
	if r.Jobs == nil {
		return make([]command.Code, len(jobs))
	}
	return r.Jobs
}

// TestTenSubmissionsAndALeaveLockNobodyOut: one site submits as much as it may and leaves permanently. That used to
// fill the queue of the whole federation for as long as the departure took.
func TestTenSubmissionsAndALeaveLockNobodyOut(t *testing.T) {
	w := newWorld(t, params(), "hog", "b", "c")
	for range 200 {
		w.codes("hog", w.job("hog", command.MaxCount))
	}
	if code := w.codes("hog", w.job("hog", command.MaxCount))[0]; code != command.TooManyTasks {
		t.Errorf("the 201st job of a million tasks: %v", code)
	}
	w.must("hog", &command.Leave{})
	for _, x := range []string{"b", "c"} {
		if code := w.codes(x, w.job(x, command.MaxCount))[0]; code != command.OK {
			t.Errorf("a job of %s: %v", x, code)
		}
	}
}

// TestAFloodLeavesOthersUntouched: a site uses up each of its quotas; what others may have does not change, nor
// what is kept of theirs.
func TestAFloodLeavesOthersUntouched(t *testing.T) {
	w := newWorld(t, params(), "hog", "b")
	w.withQuotas(func(b *bounds) {
		b.tasks, b.jobs, b.bytes = share{200, 1}, share{40, 1}, share{200, 1}
		b.kept, b.keptBytes, b.records = share{20, 1}, share{4000, 1}, share{20, 1}
	})
	w.must("b", w.offering("b", 5))
	for range 5 {
		w.submit("b", w.job("b", 1))
	}
	done := &command.Complete{}
	for _, a := range w.s.Assignments("b") {
		done.Attempts = append(done.Attempts, ended(a, command.Succeeded, 1))
	}
	w.must("b", done)
	before, _ := w.s.Quotas("b")
	met := map[command.Code]bool{}
	for i := range uint32(300) {
		j := w.job("hog", []uint32{1, 30, 1}[i/100])
		j.Payload = make([]byte, []int{1, 1, 50}[i/100])
		j.Need.MilliCPU, j.Need.GPU = int64(i%9+1), 9
		code := w.codes("hog", j)[0]
		met[code] = true
		for num := range w.num["hog"] {
			if i%100 == 99 || code == command.OK && i%100 > 80 { // everything, or what was just accepted and is kept
				w.do("hog", &command.Cancel{Job: command.JobID{Site: "hog", Num: num + 1}, Task: -1})
			}
		}
	}
	if !met[command.TooManyTasks] || !met[command.TooManyJobs] || !met[command.TooManyBytes] {
		t.Errorf("the flood met %v only", met)
	}
	after, _ := w.s.Quotas("b")
	for i, u := range before.Uses {
		if after.Uses[i] != u {
			t.Errorf("b had %+v, has %+v", u, after.Uses[i])
		}
	}
	for num := range uint64(5) {
		if v, _ := w.s.Tasks(command.JobID{Site: "b", Num: num + 1}, 0, 1); len(v) != 1 || v[0].Machine == "" {
			t.Errorf("job b.%d: %+v", num+1, v)
		}
	}
	if code := w.codes("b", w.job("b", 100))[0]; code != command.OK {
		t.Errorf("b may have 100 tasks: %v", code)
	}
	w.check()
}

// TestWhatIsGivenBackCountsNoMore: cancelling makes room at once, and so does an end.
func TestWhatIsGivenBackCountsNoMore(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.withQuotas(func(b *bounds) { b.tasks, b.jobs = share{10, 1}, share{2, 1} })
	w.codes("a", w.job("a", 5), w.job("a", 5))
	if code := w.codes("a", w.job("a", 1))[0]; code != command.TooManyTasks {
		t.Fatalf("10 tasks of 10 are here, one more: %v", code)
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 0})
	if code := w.codes("a", w.job("a", 1))[0]; code != command.TooManyJobs {
		t.Fatalf("2 jobs of 2 are here, one more: %v", code)
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	if code := w.codes("a", w.job("a", 5))[0]; code != command.OK {
		t.Fatalf("5 tasks were given back: %v", code)
	}
	w.check()
}

// TestQuotasShrinkAsSitesJoin: each site has an equal part, and one that has more keeps it. A site that is gone
// permanently has no share, and has one again when it returns.
func TestQuotasShrinkAsSitesJoin(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.withQuotas(func(b *bounds) { b.tasks = share{12, 5} })
	limit := func() uint64 {
		v, _ := w.s.Quotas("a")
		return v.Uses[0].Limit
	}
	w.codes("a", w.job("a", 12))
	for _, step := range []struct {
		what string
		do   func()
		want uint64
	}{
		{"alone", func() {}, 12},
		{"b joins", func() { w.register("b") }, 6},
		{"c joins", func() { w.register("c") }, 5},
		{"b leaves, and may come back", func() { w.must("b", &command.Leave{}) }, 5},
		{"b is forgotten", func() { w.must("a", &command.Forget{Site: "b"}) }, 6},
		{"b comes back", func() { w.register("b") }, 5},
	} {
		if step.do(); limit() != step.want {
			t.Errorf("%s: the limit is %d, should be %d", step.what, limit(), step.want)
		}
		w.check()
	}
	if code := w.codes("a", w.job("a", 1))[0]; code != command.TooManyTasks || w.s.byName["a"].use.tasks != 12 {
		t.Errorf("a has 12 of 5: %v", code)
	}
	if _, err := reborn(w.s); err != nil {
		t.Error(err)
	}
}

// TestKeptJobsAreBoundedInBytes: ended jobs leave when they take too much, whatever their number; the last one
// stays, because whoever waits for its end must see it. 100,000 of a MiB each could once be kept.
func TestKeptJobsAreBoundedInBytes(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.withQuotas(func(b *bounds) { b.keptBytes = share{2000, 1} })
	large := func(site string, size int) command.JobSpec {
		j := w.job(site, 1)
		j.Payload = make([]byte, size)
		return j
	}
	end := func(site string, j command.JobSpec) {
		w.submit(site, j)
		w.must(site, &command.Cancel{Job: command.JobID{Site: site, Num: j.Num}, Task: -1})
	}
	end("b", large("b", 500))
	for range 10 {
		end("a", large("a", 300))
	}
	if a, b := w.s.byName["a"], w.s.byName["b"]; a.ended.Len() != 3 || a.use.keptBytes != 3*(300+runBytes) ||
		b.ended.Len() != 1 {
		t.Errorf("a keeps %d jobs of %d bytes, b %d", a.ended.Len(), a.use.keptBytes, b.ended.Len())
	}
	end("a", large("a", 5000))
	if v, ok := w.s.Job(command.JobID{Site: "a", Num: 11}); !ok || v.State != TaskCancelled ||
		w.s.byName["a"].ended.Len() != 1 {
		t.Errorf("the large job is kept %v: %+v", ok, v)
	}
	if code := w.codes("a", large("a", 1))[0]; code != command.OK {
		t.Errorf("what is kept last stands in nobody's way: %v", code)
	}
	w.check()
}

// TestWhatLeavesCountsUntilItHasLeft: jobs that end faster than they may leave are not replaced by new ones.
func TestWhatLeavesCountsUntilItHasLeft(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.withQuotas(func(b *bounds) { b.jobs, b.kept, b.retire = share{10, 1}, share{2, 1}, 1 })
	for range 10 {
		w.submit("a", w.job("a", 1))
	}
	var cancels []command.Command
	for num := range uint64(10) {
		cancels = append(cancels, w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: num + 1}, Task: -1}))
	}
	w.apply(cancels...)
	if code := w.codes("a", make([]command.JobSpec, 0)...); len(code) != 0 || len(w.s.byName["a"].nums) != 8 {
		t.Fatalf("%d jobs after two leavings", len(w.s.byName["a"].nums))
	}
	var jobs []command.JobSpec
	for range 5 {
		jobs = append(jobs, w.job("a", 1))
	}
	if codes := w.codes("a", jobs...); codes[3] != command.OK || codes[4] != command.TooManyJobs {
		t.Errorf("6 of 10 are still to leave: %v", codes)
	}
	w.check()
}

// TestGapsOfNumbersAreBounded: a site that settles nothing leaves a range of numbers behind for each job. Restore
// bounded them, Apply did not. The number that closes a gap is still accepted.
func TestGapsOfNumbersAreBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.withQuotas(func(b *bounds) { b.jobs, b.kept, b.gaps = share{2, 1}, share{2, 1}, 3 })
	p := w.s.params
	p.RetainJobs = 0
	w.must("a", &command.SetParams{Params: p})
	full := 0
	for num := uint64(2); num < 40; num += 2 {
		j := w.job("a", 1)
		j.Num = num
		if code := w.codes("a", j)[0]; code == command.TooManyNumbers {
			full++
			continue
		}
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: num}, Task: -1})
	}
	a := w.s.byName["a"]
	if len(a.retired) != 7 || full != 12 {
		t.Errorf("%d ranges are kept, %d jobs were refused; 2 + 2 + 3 may be", len(a.retired), full)
	}
	if _, err := reborn(w.s); err != nil {
		t.Error(err)
	}
	lowest := w.job("a", 1)
	lowest.Num = 1
	if code := w.codes("a", lowest)[0]; code != command.OK {
		t.Fatalf("the number that all waits for: %v", code)
	}
	later := w.job("a", 1)
	later.Num = 50
	if r := w.must("a", &command.Submit{Settled: 40, Jobs: []command.JobSpec{later}}); r.Jobs != nil {
		t.Errorf("nothing below 40 is on its way: %v", r.Jobs)
	}
	w.check()
}

// TestRestoreAtTheBound: a state at each bound is restored, and one beyond it is refused, since no entry leads
// there.
func TestRestoreAtTheBound(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.withQuotas(func(b *bounds) { b.members, b.held, b.shapes = 2, 2, 2 })
	p := w.s.params
	p.RetainJobs = 1
	w.must("a", &command.SetParams{Params: p})
	w.must("b", w.offering("b", 4))
	wide := w.job("a", 3)
	wide.Need.MilliCPU = 9000
	w.submit("a", w.job("a", 5), wide)
	as := w.s.Assignments("b")
	w.must("b", &command.Complete{Attempts: []command.Ended{
		ended(as[0], command.Succeeded, 0), ended(as[1], command.Succeeded, 0),
	}})
	for num := uint64(5); num < 13; num += 2 { // three ranges and the last job are kept
		j := w.job("a", 1)
		j.Num = num
		w.submit("a", j)
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: num}, Task: -1})
	}
	used := map[string]uint64{"attempts": 2, "sites": 2}
	a, _ := w.s.Quotas("a")
	for _, u := range a.Uses {
		used[u.Quota] = u.Used
	}
	at := w.s.bounds
	at.tasks, at.jobs, at.bytes = share{
		used[command.QuotaTasks], 1,
	}, share{used[command.QuotaJobs], 1}, share{used[command.QuotaBytes], 1}
	at.kept, at.records = share{1, 1}, share{used[command.QuotaRecords], 1}
	at.gaps = used[command.QuotaNumbers] - 2*used[command.QuotaJobs] - 1
	w.s.bounds = at
	if _, err := restore(bytes.NewReader(snapshotOf(t, w.s)), at); err != nil {
		t.Fatalf("at the bounds %v: %v", used, err)
	}
	for name, tighten := range map[string]func(b *bounds){
		command.QuotaTasks:   func(b *bounds) { b.tasks.total-- },
		command.QuotaJobs:    func(b *bounds) { b.jobs.total-- },
		command.QuotaBytes:   func(b *bounds) { b.bytes.total-- },
		command.QuotaShapes:  func(b *bounds) { b.shapes-- },
		command.QuotaNumbers: func(b *bounds) { b.gaps-- },
		command.QuotaRecords: func(b *bounds) { b.records.total-- },
		"attempts":           func(b *bounds) { b.held-- },
		"sites":              func(b *bounds) { b.members-- },
	} {
		beyond := at
		tighten(&beyond)
		_, err := restore(bytes.NewReader(snapshotOf(t, w.s)), beyond)
		if !errors.Is(err, ErrBadSnapshot) || !strings.Contains(err.Error(), name) {
			t.Errorf("%d %s, one less may be: %v", used[name], name, err)
		}
	}
}
