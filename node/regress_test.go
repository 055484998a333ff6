package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// Each test here is a bug that a reviewer or chaos found.

// A declined assignment stands in the state until its Decline is ordered. When
// room came back in between, it was started here, and then elsewhere, too.
func TestDeclinedAssignmentIsNotStarted(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(sleepJob, "") // home at b
	b.submit(sleepJob, "") // published
	a.submit(sleepJob, "") // home at a, whose offer is not ordered yet
	offer := a.pending
	a.pending = nil
	mine := b.pending
	b.pending = nil
	b.turn(resultEvent{cmds: mine, results: r.apply(mine...)})
	a.turn(stateEvent{}) // a sees b.2 and declines
	a.pending = append(offer, a.pending...)
	a.finish(a.only(), 0)
	a.lease(2 * time.Hour) // has the assignments looked at again
	if len(a.running) != 0 {
		t.Fatalf("%s runs while its decline is under way", a.only())
	}
	b.finish(b.only(), 0)
	r.settle()
	if len(a.running)+len(b.running) != 1 {
		t.Errorf("b.2 runs %d times", len(a.running)+len(b.running))
	}
}

// A declined task must not lift other tasks' bars: two that fit nowhere went
// round and round, hundreds of entries a second.
func TestUnfitTasksComeToRest(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	for _, s := range r.sites {
		s.refuse = executor.ErrUnfit
	}
	r.sites[0].submit(`{"command":["true"],"count":3}`, "")
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Queued {
		t.Errorf("job is %s", v.State)
	}
	if n := r.state.Index(); n > 60 {
		t.Errorf("%d entries until it came to rest", n)
	}
}

// What the registration names as held may be lost before it is executed: it was
// dropped without a report, and the same attempt was started again.
func TestHeldThenLostIsReported(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(`{"command":["true"],"retry":{"on_loss":"never"}}`, "")
	r.settle()
	id := b.only()
	held, lost := b.reopen()
	delete(b.running, id)
	res := executor.Result{Cause: executor.Fenced, Started: r.now, Run: time.Second}
	b.ended[id] = res
	b.turn(endedEvent{id, res}) // the fence passes while there is no quorum
	b.register(held, lost)
	b.lease(time.Hour)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskLost || len(b.history) != 1 {
		t.Errorf("job is %s after %d starts, want lost after one", v.State, len(b.history))
	}
}

// A wall clock that is set by decades made reports that no order would take.
func TestClockStepsStayReportable(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	step := 56 * 365 * 24 * time.Hour
	for _, s := range []*rigSite{a, b} {
		id := s.only()
		delete(s.running, id)
		res := executor.Result{Started: r.now.Add(step), Run: time.Second}
		s.ended[id] = res
		s.turn(endedEvent{id, res})
		s.ticks(usageTicks)
	}
	r.settle() // fails if a command does not decode
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("job is %s", v.State)
	}
}

// A job that was acknowledged from the journal is kept when the queue is full.
func TestPromisedJobSurvivesAFullQueue(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.promise()
	mine := a.pending
	a.pending = nil
	full := make([]fsm.Result, len(mine))
	for k, c := range mine {
		if _, submit := c.Body.(*fsm.Submit); submit {
			full[k].Jobs = []fsm.Code{fsm.TooManyJobs}
		}
	}
	a.turn(resultEvent{cmds: mine, results: full})
	if _, known := a.core.ownJob(2); !known {
		t.Fatal("the acknowledged job is gone")
	}
	a.boot()
	r.now = r.now.Add(2 * fullPause)
	a.turn(tickEvent{})
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("job is %s", v.State)
	}
}

// A site that is given up while it says goodbye has left all the same.
func TestLeaveEndsWhenTheSiteIsGivenUp(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	b := r.sites[1]
	var code fsm.Code
	done := false
	b.turn(askEvent(func(c *core) {
		c.gone = true
		c.out.add(&fsm.Leave{}, func(res fsm.Result, _ stateReader, _ *effects) { code, done = res.Code, true })
	}))
	r.lose(b)
	b.turn(stateEvent{})
	r.settle()
	if !done || code != fsm.OldIncarnation {
		t.Errorf("goodbye answered: %v, %s", done, code)
	}
}

// A site that cannot start anything hands work back and pauses, and fails none.
func TestSickSiteFailsNothing(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.refuse = errSick
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Fatalf("job is %s", v.State)
	}
	if v, _ := r.state.Site("b"); v.Exposed.MilliCPU != 0 {
		t.Error("a site that cannot start anything offers room")
	}
	b.refuse = nil
	r.now = r.now.Add(minRest)
	b.turn(tickEvent{})
	r.settle()
	if id := b.only(); id.Job != "a.2" {
		t.Errorf("%s runs", id)
	}
}

// Many large jobs must go out in several calls: one over the log's limit stopped
// the broker, and again after each restart.
func TestCallsStayUnderTheLogsLimit(t *testing.T) {
	var cmds []fsm.Command
	for range 40 {
		cmds = append(cmds, fsm.Command{Body: &fsm.Submit{Jobs: []fsm.JobSpec{{Payload: make([]byte, 500_000)}}}})
	}
	for range 1000 {
		cmds = append(cmds, fsm.Command{Body: &fsm.Cancel{}})
	}
	calls := 0
	for ; len(cmds) > 0; calls++ {
		n := callSize(cmds)
		size := 0
		for _, c := range cmds[:n] {
			size += len(fsm.AppendCommand(nil, c))
		}
		if n == 0 || n > maxCallCommands || size > maxCallBytes+1<<20 {
			t.Fatalf("call of %d commands, %d bytes", n, size)
		}
		cmds = cmds[n:]
	}
	if calls < 10 {
		t.Errorf("%d calls", calls)
	}
}

// What was accepted without a quorum stands in the list, too.
func TestListShowsWhatIsOnItsWay(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	a.group.Cut("site-1")
	a.group.Tick()
	spec, err := ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	go a.Submit(t.Context(), []Request{{Spec: spec}})
	known := func(c *core) bool { return c.pubs.find(2) != nil }
	a.until(t.Context(), known)
	page, err := a.Jobs(t.Context(), JobQuery{Limit: 10})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("%d jobs listed, %v; want both", len(page.Items), err)
	}
	if page.Items[0].ID.Num != 2 && page.Items[1].ID.Num != 2 {
		t.Errorf("listed %s and %s", page.Items[0].ID, page.Items[1].ID)
	}
}

// A job that was published while the list was being put together, or whose
// publication this broker has not heard of yet, stands in it once; what is
// older on both sides is still found.
func TestListShowsAPublishedJobOnce(t *testing.T) {
	a := startSites(t, 1)[0]
	for range 4 { // one at home, three through the queue
		a.accept(t, sleepJob)
	}
	q := JobQuery{Limit: 2}
	own, err := a.ownPage(t.Context(), q, cursor{})
	if err != nil || len(own.jobs) != 1 {
		t.Fatalf("%d own jobs, %v; want the one at home", len(own.jobs), err)
	}
	home := own.jobs[0]
	for num := uint64(4); num > 2; num-- { // as the core saw them a moment ago
		j, err := a.Job(t.Context(), fsm.JobID{Site: a.name, Num: num})
		if err != nil {
			t.Fatal(err)
		}
		own.jobs = append(own.jobs[:len(own.jobs)-1], listed{j, num}, home)
	}
	own.jobs, own.rest = own.jobs[:2], 3
	var got []string
	fed, next := a.federationPage(q, cursor{}, &own)
	page := merge(fed, own, next, q.Limit, cursor{site: a.cfg.Site})
	for {
		for _, j := range page.Items {
			got = append(got, j.ID.String())
		}
		if page.Next == "" {
			break
		}
		if page, err = a.Jobs(t.Context(), JobQuery{Limit: 2, Cursor: page.Next}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"site-1.4", "site-1.3", "site-1.2", "site-1.1"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// A client that stops waiting is not told that the broker stops.
func TestImpatientClientIsToldTheTruth(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	a.group.Cut("site-1")
	spec, err := ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got := a.Submit(ctx, []Request{{Spec: spec}})[0]
	if got.Err == nil || errors.Is(got.Err, ErrStopping) || !errors.Is(got.Err, context.DeadlineExceeded) {
		t.Errorf("answer %+v", got)
	}
}

// A task that nobody here can run must not keep others from starting at home.
func TestDeclinedTasksDoNotBlockHomeStarts(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.refuse = executor.ErrUnfit
	a.submit(`{"command":["true"],"count":2}`, "") // wider than home: it goes through the queue
	r.settle()
	a.refuse = nil
	i := a.submit(sleepJob, "")
	if a.answers[i].Durability != DurableSite || len(a.running) != 1 {
		t.Errorf("answer %+v", a.answers[i])
	}
}

// Parameters that would strand everybody are refused with their names.
func TestParamsThatStrandAreRefused(t *testing.T) {
	now := fsm.DefaultParams()
	for name, change := range map[string]func(*fsm.Params){
		"lease_ms":    func(p *fsm.Params) { p.LeaseMs = 1 },
		"retain_jobs": func(p *fsm.Params) { p.RetainJobs = 0 },
		"retain_ms":   func(p *fsm.Params) { p.RetainMs = 0 },
	} {
		p := now
		change(&p)
		if err := checkParams(now, p); !errors.Is(err, ErrBadParams) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Found by measuring pauses: a task returned to the site that was still stopping
// its former attempt, was declined for lack of room, and then stayed barred from
// the only site that could run it.
func TestDeclinedForRoomComesBack(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "") // keeps a busy
	a.submit(`{"command":["true"],"retry":{"on_loss":"immediate"}}`, "")
	r.settle()
	old := b.only()
	r.apply(fsm.Command{ // the state takes it away while its first attempt is here still
		ID:   fsm.CommandID{Site: "b", Incarnation: b.core.incarnation, Seq: b.core.out.seq + 100},
		Body: &fsm.Complete{Attempts: []fsm.Ended{{AttemptRef: r.state.Assignments("b")[0].AttemptRef, Outcome: fsm.Lost}}},
	})
	r.settle()
	delete(b.running, old)
	b.turn(endedEvent{old, executor.Result{Cause: executor.Stopped, Started: r.now, Run: 1}})
	b.ticks(usageTicks)
	r.settle()
	if id := b.only(); id.Attempt < 2 {
		t.Errorf("%s runs", id)
	}
}

// A cancelled home job ran again: after a power failure, when its supervisor
// vanished, or when it failed by itself while it was being stopped.
func TestCancelledHomeJobNeverRunsAgain(t *testing.T) {
	const retried = `{"command":["sleep"],"retry":{"max_attempts":3}}`
	ends := map[string]func(*rigSite, executor.ID){
		"power": func(s *rigSite, id executor.ID) {
			delete(s.running, id)
			s.boot()
		},
		"vanished": func(s *rigSite, id executor.ID) {
			delete(s.running, id)
			s.turn(endedEvent{id, executor.Result{Cause: executor.Vanished, Detail: "lost: its supervisor died"}})
		},
		"failed by itself": func(s *rigSite, id executor.ID) { s.finish(id, 1) },
	}
	for name, end := range ends {
		r := newRig(t, fsm.DefaultParams(), 1)
		a := r.sites[0]
		a.submit(retried, "")
		id := a.only()
		var refused error
		a.turn(cancelEvent{num: 1, reply: func(err error) { refused = err }})
		if refused != nil {
			t.Fatal(refused)
		}
		end(a, id)
		r.settle()
		task := a.core.home.jobs[1].Tasks[0]
		if len(a.history) != 1 || task.State != fsm.TaskCancelled || task.EndedMs == 0 {
			t.Errorf("%s: started %v, the task is %+v", name, a.history, task)
		}
	}
}

// A job that its client was told to be refused came back with the next start of
// the broker.
func TestRefusedJobStaysRefused(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "") // at home
	i := a.submit(sleepJob, "")
	cmds, results := a.pending, make([]fsm.Result, len(a.pending))
	a.pending = nil
	for k := range cmds {
		if _, submit := cmds[k].Body.(*fsm.Submit); submit {
			results[k].Jobs = []fsm.Code{fsm.TooManyJobs}
		}
	}
	a.turn(resultEvent{cmds: cmds, results: results})
	if !errors.Is(a.answers[i].Err, ErrFull) {
		t.Fatalf("the answer: %+v", a.answers[i])
	}
	a.boot()
	if p := a.core.pubs.find(2); p != nil {
		t.Errorf("after a restart the refused job is on its way: %+v", p.spec)
	}
}

// A site that was expelled right after it had registered, and died while it
// registered again, could not prove that its data were its latest.
func TestNotedBootKeepsNewerOnes(t *testing.T) {
	j, err := OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	boots := [][16]byte{{1}, {2}, {3}, {4}}
	for _, boot := range boots[:3] {
		if _, err := j.Boot(boot); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.commit([]write{registeredAs(boots[1])}); err != nil {
		t.Fatal(err)
	}
	known, err := j.Boot(boots[3])
	if want := [][16]byte{{4}, {3}, {2}}; err != nil || !slices.Equal(known, want) {
		t.Errorf("knows %v, %v; want %v", known, err, want)
	}
}

// A home task that no machine could take any more held up all behind it.
func TestStuckHomeTaskHoldsUpNobody(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 3)
	a := r.sites[0]
	a.submit(`{"command":["sleep"],"resources":{"cpu":2},"retry":{"max_attempts":3}}`, "")
	wide := a.only()
	a.submit(`{"command":["sleep"],"retry":{"max_attempts":3}}`, "")
	narrow := a.history[1]
	a.turn(capacityEvent{"local", []executor.Machine{{Name: "a-local", Resources: executor.Resources{MilliCPU: 1000, MemMiB: 1024}}}})
	a.finish(wide, 1)
	a.finish(narrow, 1)
	if task := a.core.home.jobs[1].Tasks[0]; task.State != fsm.Queued || task.Reason != tooSmall {
		t.Errorf("the wide task: %+v", task)
	}
	if id := a.only(); id.Attempt != 2 || id.Job != narrow.Job {
		t.Errorf("%s runs, want the narrow task's second attempt", id)
	}
}

// A broker that was started without a quorum said of everything that it had not
// read yet that it was not there, and of what it had published that it was not.
func TestUnreadStateIsNotTakenForTheTruth(t *testing.T) {
	sites := startSites(t, 1, 1)
	a := sites[0]
	a.accept(t, sleepJob)              // at home
	published := a.accept(t, sleepJob) // at b
	away := fsm.JobID{Site: "site-2", Num: 1}
	if _, err := a.Job(t.Context(), published.ID); err != nil || a.Current() != nil {
		t.Fatalf("before: %v, %v", err, a.Current())
	}
	a.stop(t)
	a.group.Cut("site-1")
	a.handler = a.handler.reopen()
	a.open(t)
	if _, err := a.Job(t.Context(), fsm.JobID{Site: "site-1", Num: 1}); err != nil {
		t.Errorf("the job at home: %v", err)
	}
	for _, id := range []fsm.JobID{away, {Site: "site-1", Num: 77}} {
		if _, err := a.Job(t.Context(), id); !errors.Is(err, ErrNotReady) || errors.Is(err, ErrNotFound) {
			t.Errorf("job %s: %v, want that the state is not known", id, err)
		}
	}
	if j, err := a.Job(t.Context(), published.ID); err == nil && !strings.Contains(j.Reason, "once there is a quorum") {
		t.Errorf("the published job is %s: %q", j.State, j.Reason)
	}
	if err := a.Current(); !errors.Is(err, ErrNotReady) {
		t.Errorf("the state: %v", err)
	}
}
