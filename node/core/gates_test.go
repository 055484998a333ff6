package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// gatedRig is a federation whose sites all know gates.
func gatedRig(t *testing.T, params command.Params, cores ...int64) *rig {
	t.Helper()
	r := newRig(t, params, cores...)
	r.raise()
	return r
}

// gatedJob is a job with more fields.
func gatedJob(fields string) string { return `{"command":["sleep","1"],` + fields + `}` }

// tasksOf returns which tasks of a job run at the site, in order.
func (s *rigSite) tasksOf(id command.JobID) (tasks []uint32) {
	for at := range s.running {
		if at.Job == id.String() {
			tasks = append(tasks, at.Task)
		}
	}
	slices.Sort(tasks)
	return tasks
}

// endTask ends a running task of a job, and orders what follows.
func (s *rigSite) endTask(id command.JobID, task uint32, exit int) {
	s.rig.t.Helper()
	for at := range s.running {
		if at.Job == id.String() && at.Task == task {
			s.finish(at, exit)
			s.rig.settle()
			return
		}
	}
	s.rig.t.Fatalf("task %s/%d does not run", id, task)
}

// wantTasks compares which tasks of a job run at the site.
func (s *rigSite) wantTasks(id command.JobID, want ...uint32) {
	s.rig.t.Helper()
	if got := s.tasksOf(id); !slices.Equal(got, want) {
		s.rig.t.Fatalf("of job %s tasks %v run, want %v: %v", id, got, want, s.rig.job(id.String()).Counts)
	}
}

// wait lets ticks pass, each with what is ordered in it.
func (s *rigSite) wait(d time.Duration) {
	s.rig.t.Helper()
	for range d / TickEvery {
		s.ticks(1)
		s.rig.settle()
	}
}

// TestBackoff: a task that fails is held for its pause, which doubles, over restarts of its owner's broker too.
func TestBackoff(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	job := a.add(gatedJob(`"retry":{"max_attempts":3,"backoff":"4s"}`)).ID
	a.endTask(job, 0, 3)
	a.wait(2900 * time.Millisecond) // three quarters of four seconds is the least
	a.wantTasks(job)
	if v := r.job(job.String()); v.State != fsm.Queued || v.Counts[fsm.Held] != 1 ||
		!strings.HasPrefix(a.core.Gates(job.Num), "tasks held: 1 in the pause after a failure, the first for ") {
		t.Errorf("%v, %q", v.Counts, a.core.Gates(job.Num))
	}
	a.boot()
	r.settle()
	a.wait(1200 * time.Millisecond)
	a.wantTasks(job, 0)
	a.endTask(job, 0, 3)
	a.wait(5900 * time.Millisecond)
	a.wantTasks(job)
	a.wait(2200 * time.Millisecond)
	a.wantTasks(job, 0)
	a.endTask(job, 0, 3)
	if v := r.job(job.String()); v.State != fsm.TaskFailed || len(a.history) != 3 || a.core.gates.Len() != 0 {
		t.Errorf("%v after %d attempts, %d jobs are known", v.State, len(a.history), a.core.gates.Len())
	}
}

// TestRetryByExitCode: after a code in not_on, or none of only_on, the task has failed.
func TestRetryByExitCode(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	for retry, want := range map[string]string{
		`"not_on":["2","64-78"]`: "exit 65, after which it is not tried again (retry.not_on)",
		`"only_on":["1"]`:        "exit 65, after which it is not tried again (retry.only_on has others)",
		`"only_on":["65"]`:       "",
	} {
		job := a.add(gatedJob(`"retry":{"max_attempts":9,` + retry + `}`)).ID
		a.endTask(job, 0, 65)
		if v := r.job(job.String()); (want != "") != (v.State == fsm.TaskFailed) || want != "" && v.Reason != want {
			t.Errorf("%s: %v, %q", retry, v.State, v.Reason)
		}
		if want == "" {
			a.endTask(job, 0, 0)
		}
	}
}

// TestParallel: no more tasks run than may, whoever is killed, and all of them do in the end.
func TestParallel(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 3, 3)
	a, b := r.sites[0], r.sites[1]
	job := a.add(gatedJob(`"count":7,"parallel":2`)).ID
	ended := 0
	for ended < 7 {
		all := append(keysOfRunning(a), keysOfRunning(b)...)
		if want := min(2, 7-ended); len(all) != want {
			t.Fatalf("%d tasks run after %d have ended, want %d", len(all), ended, want)
		}
		at := a
		if _, here := a.running[all[0]]; !here {
			at = b
		}
		if ended == 3 {
			a.boot()
			r.settle()
		}
		at.endTask(job, all[0].Task, 0)
		ended++
	}
	if v := r.job(job.String()); v.State != fsm.TaskSucceeded || len(a.history)+len(b.history) != 7 {
		t.Errorf("%v after %d starts", v.State, len(a.history)+len(b.history))
	}
}

func keysOfRunning(s *rigSite) (ids []executor.ID) {
	for id := range s.running {
		ids = append(ids, id)
	}
	return ids
}

// TestEach: a task begins when the one at its place has succeeded, at home or in the federation; if that ends
// otherwise, it is cancelled with the reason, and so is the one that waits for it.
func TestEach(t *testing.T) {
	for name, sites := range map[string]string{"at home": "", "in the federation": `,"parallel":3`} {
		t.Run(name, func(t *testing.T) {
			r := gatedRig(t, command.DefaultParams(), 3)
			a := r.sites[0]
			first := a.add(gatedJob(`"count":3,"indices":"4-6"` + sites)).ID
			each := func(of command.JobID) command.JobID {
				return a.add(gatedJob(fmt.Sprintf(`"count":3,"after":[{"job":%q,"when":"each"}]`, of))).ID
			}
			second := each(first)
			third := each(second)
			a.wantTasks(second)
			a.endTask(first, 1, 0)
			a.wantTasks(second, 1)
			a.wantTasks(third)
			a.boot()
			r.settle()
			a.endTask(first, 0, 1)
			a.endTask(second, 1, 0)
			a.wantTasks(third, 1)
			a.endTask(first, 2, 0)
			a.endTask(second, 2, 5)
			a.endTask(third, 1, 0)
			for id, want := range map[command.JobID]string{
				second: "1 succeeded 1 failed 1 cancelled", third: "1 succeeded 0 failed 2 cancelled",
			} {
				c := r.job(id.String()).Counts
				got := fmt.Sprintf("%d succeeded %d failed %d cancelled", c[fsm.TaskSucceeded], c[fsm.TaskFailed], c[fsm.TaskCancelled])
				if got != want {
					t.Errorf("job %s: %s, want %s", id, got, want)
				}
			}
			if why := r.job(third.String()).Reason; !strings.HasPrefix(why, "waited for the task at its place of job a.2") {
				t.Error(why)
			}
			if n := a.core.gates.Len(); n != 0 {
				t.Errorf("%d jobs are known", n)
			}
		})
	}
}

// TestEachIsKept: what has ended of a job is known as long as tasks wait for it, though the job is no longer kept.
func TestEachIsKept(t *testing.T) {
	params := command.DefaultParams()
	params.RetainMs = 1000
	r := gatedRig(t, params, 2)
	a := r.sites[0]
	first := a.add(gatedJob(`"count":2,"parallel":2`)).ID
	second := a.add(gatedJob(fmt.Sprintf(`"count":2,"after":[{"job":%q,"when":"each"}]`, first))).ID
	if err := a.setHold(second, true); err != nil {
		t.Fatal(err)
	}
	a.endTask(first, 0, 0)
	if d := a.core.Dependencies(second.Num, 9); len(d.On) != 1 || d.On[0].State != "" || d.On[0].Job != first {
		t.Errorf("waits for %+v", d.On)
	}
	a.endTask(first, 1, 3)
	a.wantTasks(second)
	d, by := a.core.Dependencies(second.Num, 9), a.core.Dependencies(first.Num, 9)
	if d.On[0].State != "failed" || by.All != 1 || len(by.Waiting) != 1 || by.Waiting[0] != second {
		t.Errorf("waits for %+v, by %+v", d.On, by)
	}
	a.boot()
	for range 40 {
		r.now = r.now.Add(time.Minute)
		r.apply()
	}
	if _, known := r.state.Job(first); known {
		t.Fatal("the first job is kept")
	}
	a.lease(time.Hour)
	a.boot()
	if err := a.setHold(second, false); err != nil {
		t.Fatal(err)
	}
	r.settle()
	a.wantTasks(second, 0)
	a.endTask(second, 0, 0)
	if v := r.job(second.String()); v.State != fsm.TaskCancelled {
		t.Errorf("%v %v", v.State, v.Counts)
	}
}

// setHold holds a job or lets it go.
func (s *rigSite) setHold(id command.JobID, hold bool) error {
	err := errors.New("unanswered")
	s.turn(HoldEvent{Num: id.Num, Hold: hold, Reply: func(e error) { err = e }})
	return err
}

// TestHoldByHand: nothing of a held job begins, also after a restart, and what runs goes on.
func TestHoldByHand(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	job := a.add(gatedJob(`"count":5,"parallel":4`)).ID
	a.wantTasks(job, 0, 1)
	if err := a.setHold(job, true); err != nil {
		t.Fatal(err)
	}
	r.settle()
	a.endTask(job, 0, 0)
	a.boot()
	r.settle()
	a.endTask(job, 1, 0)
	a.wantTasks(job)
	want := "tasks held: 3 held by hand, until cloudshare release"
	if c := r.job(job.String()).Counts; c[fsm.Held] != 3 || a.core.Gates(job.Num) != want {
		t.Errorf("%v, %q", c, a.core.Gates(job.Num))
	}
	if err := a.setHold(job, false); err != nil {
		t.Fatal(err)
	}
	r.settle()
	a.wantTasks(job, 2, 3)
	if err := a.setHold(command.JobID{Site: "a", Num: 99}, true); !errors.Is(err, node.ErrNotFound) {
		t.Error(err)
	}
}

// TestBadEachIsRefused: jobs of different sizes do not wait for each other task by task.
func TestBadEachIsRefused(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	first := a.add(gatedJob(`"count":3`)).ID
	i := a.submit(gatedJob(fmt.Sprintf(`"count":2,"after":[{"job":%q,"when":"each"}]`, first)), "")
	bad, ok := errors.AsType[*jobspec.SpecError](a.answers[i].Err)
	if !ok || bad.Field != "after" || !strings.Contains(bad.Reason, "it has 3, this job 2") {
		t.Error(a.answers[i].Err)
	}
}

// TestGatesNeedAllBrokers: before all brokers know gates, jobs that need them are refused, and others are not.
func TestGatesNeedAllBrokers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	i := a.submit(gatedJob(`"count":3,"parallel":1`), "")
	if err := a.answers[i].Err; !errors.Is(err, node.ErrNotReady) || !strings.Contains(err.Error(), "it is at 1") {
		t.Error(err)
	}
	a.add(gatedJob(`"count":3`))
}

// TestHeldTasksBlockNobody: a job waits for another, a third for the second's tasks: these are held in the federation
// at once, many more of them than the window holds. The second is published when the first has ended, though its user's
// window were full with what waits for it; so are other users' jobs.
func TestHeldTasksBlockNobody(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.ticks(1)
	first := a.submitOne("alice", gatedJob(`"count":1`)).ID
	second := a.submitOne("alice", gatedJob(fmt.Sprintf(`"count":100,"after":[{"job":%q}]`, first))).ID
	third := a.submitOne("alice", gatedJob(fmt.Sprintf(`"count":100,"after":[{"job":%q,"when":"each"}]`, second))).ID
	for _, user := range []string{"bob", "carol", "dave", "erin"} {
		if err := a.setHold(a.submitOne(user, gatedJob(`"count":100,"parallel":1`)).ID, true); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if c := r.job(third.String()).Counts; c[fsm.Held] != 100 {
		t.Fatalf("the third job: %v", c)
	}
	a.endTask(first, 0, 0)
	a.ticks(20)
	r.settle()
	if v, known := r.state.Job(second); !known {
		t.Fatalf("the second job is not published: %+v", a.core.quotas.TurnOf("alice"))
	} else if v.Counts[fsm.Queued]+v.Counts[fsm.Assigned]+v.Counts[fsm.Running] != 100 {
		t.Errorf("the second job: %v", v.Counts)
	}
	if a.submitOne("frank", sleepJob); a.core.quotas.Holds("frank") {
		t.Error("tasks that others hold keep frank from publishing")
	}
}

// TestCancelledBeforeItIsPublished: a gated job that waits for another is cancelled, by hand or in vain, and forgotten.
func TestCancelledBeforeItIsPublished(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.add(gatedJob(`"count":1`)).ID
	waits := fmt.Sprintf(`"count":3,"parallel":1,"after":[{"job":%q}]`, first)
	job := a.submitOne("", gatedJob(waits)).ID
	a.submitOne("", gatedJob(waits))
	if n := a.core.gates.Len(); n != 2 {
		t.Fatalf("%d jobs are known, want 2", n)
	}
	a.turn(CancelEvent{Num: job.Num, Reply: func(error) {}})
	a.ticks(2)
	if n := a.core.gates.Len(); n != 1 {
		t.Errorf("%d jobs are known after a cancellation, want 1", n)
	}
	a.endTask(first, 0, 1)
	a.ticks(2)
	if n := a.core.gates.Len(); n != 0 {
		t.Errorf("%d jobs are known after the other waited in vain", n)
	}
}

// TestManyAreHeldAtOnce: tasks that were released one by one are all held by a few entries.
func TestManyAreHeldAtOnce(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 100)
	a := r.sites[0]
	first := a.add(gatedJob(`"count":100`)).ID
	job := a.add(fmt.Sprintf(`{"command":["x"],"count":100,"resources":{"cpu":101},"after":[{"job":%q,"when":"each"}]}`,
		first)).ID
	for i := range uint32(100) {
		a.endTask(first, i*37%100, 0)
	}
	if c := r.job(job.String()).Counts; c[fsm.Queued] != 100 {
		t.Fatalf("%v", c)
	}
	before := r.state.Index()
	if err := a.setHold(job, true); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if c := r.job(job.String()).Counts; c[fsm.Held] != 100 || r.state.Index()-before > 3 {
		t.Errorf("after %d entries %v", r.state.Index()-before, c)
	}
}

// TestHoldBeforeRegistration: a broker that has not registered yet says so, not that the job could never be held.
func TestHoldBeforeRegistration(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	job := a.add(gatedJob(`"count":3,"parallel":1`)).ID
	held, lost := a.reopen()
	a.core.gates = a.core.newGates() // its publication is in the journal no more
	if err := a.setHold(job, true); !errors.Is(err, node.ErrNotReady) {
		t.Error(err)
	}
	a.register(held, lost)
	if err := a.setHold(job, true); err != nil {
		t.Error(err)
	}
}

// TestHoldBeforeTheStateIsThere, found by a run of chaos: of a job that was accepted, and released from the journal to
// the federation, a broker that has just started and reads the log again said that there is none.
func TestHoldBeforeTheStateIsThere(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	job := a.add(gatedJob(`"count":3,"parallel":1`)).ID
	published := record.Remove(record.BucketPublishing, record.Number(job.Num)) // the broker writes that lazily
	if err := a.journal.Commit([]record.Write{published}); err != nil {
		t.Fatal(err)
	}
	held, lost := a.reopen()
	hold := func(s StateReader) (err error) {
		fx := &Effects{}
		a.core.Step(HoldEvent{Num: job.Num, Hold: true, Reply: func(e error) { err = e }}, s, fx)
		for _, reply := range fx.Replies {
			reply()
		}
		return err
	}
	if err := hold(fsm.New()); !errors.Is(err, node.ErrNotReady) {
		t.Errorf("before it has the state: %v", err)
	}
	a.register(held, lost)
	if err := hold(fsm.New()); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("of a job that the federation does not know: %v", err)
	}
}

// TestUnreadableRulesReleaseNothing: while the rules of a job cannot be read, nothing of it begins, which is explained,
// and it can be cancelled; once they can, it goes on.
func TestUnreadableRulesReleaseNothing(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	job := a.add(gatedJob(`"count":5,"parallel":1`)).ID
	unreadable := func() {
		held, lost := a.reopen()
		a.core.gates = a.core.newGates()
		a.core.gates.Read = func(*command.JobSpec) (spec jobspec.Spec, err error) { return spec, errors.New("no key") }
		a.register(held, lost)
		a.lease(time.Hour)
		r.settle()
	}
	unreadable()
	a.endTask(job, 0, 0)
	a.ticks(5)
	r.settle()
	a.wantTasks(job)
	want := "tasks held: 4 since this broker cannot read when they may begin (no key): start the version that took the job, " +
		"or cancel it"
	if got := a.core.Gates(job.Num); got != want {
		t.Error(got)
	}
	a.boot()
	r.settle()
	a.wantTasks(job, 1)
	unreadable()
	a.turn(CancelEvent{Num: job.Num, Reply: func(error) {}})
	r.settle()
	a.endTask(job, 1, 143)
	a.ticks(5)
	r.settle()
	if v := r.job(job.String()); v.Counts[fsm.TaskCancelled] != 4 || a.core.gates.Len() != 0 {
		t.Errorf("%v, %d jobs are known", v.Counts, a.core.gates.Len())
	}
}

// TestEndedJobsKnowWhoWaitedForTheirTasks: what waited for a job task by task, and has ended since, is remembered.
func TestEndedJobsKnowWhoWaitedForTheirTasks(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	first := a.add(gatedJob(`"count":2`)).ID
	second := a.add(gatedJob(fmt.Sprintf(`"count":2,"after":[{"job":%q,"when":"each"}]`, first))).ID
	if d := a.core.Dependencies(first.Num, 10); d.All != 1 || d.FollowedAll != 0 {
		t.Errorf("%+v", d)
	}
	a.turn(CancelEvent{Num: second.Num, Reply: func(error) {}})
	r.settle()
	a.ticks(20)
	r.settle()
	if d := a.core.Dependencies(first.Num, 10); d.All != 0 || !slices.Equal(d.Followed, []command.JobID{second}) {
		t.Errorf("%+v", d)
	}
}

// TestEachOfWhatIsNoLongerKept: nobody knows how each task of a job has ended that is no longer kept, though its own
// end is recorded for others; it does not count as one of no tasks. Before its broker is registered it may be kept.
func TestEachOfWhatIsNoLongerKept(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	first := a.add(sleepJob)
	a.endOnly(0)
	a.add(afterJob(first.ID.String(), a.add(sleepJob).ID.String())) // keeps its end recorded
	fx := &Effects{}
	a.core.home.Forget(first.ID.Num, fx)
	if err := a.journal.Commit(fx.Writes); err != nil {
		t.Fatal(err)
	}
	each := afterJob(first.ID.String() + ":each")
	err := a.answers[a.submit(each, "")].Err
	if bad, ok := errors.AsType[*jobspec.SpecError](err); !ok || !strings.HasPrefix(bad.Reason, "is no longer kept") {
		t.Error(err)
	}
	a.reopen()
	if err := a.answers[a.submit(each, "")].Err; !errors.Is(err, node.ErrNotReady) {
		t.Error(err)
	}
}
