package core

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// Each test here is a bug that a reviewer or chaos found.

// A declined assignment stands in the state until its Decline is ordered. When
// room came back in between, it was started here, and then elsewhere, too.
func TestDeclinedAssignmentIsNotStarted(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(sleepJob, "") // home at b
	b.submit(sleepJob, "") // published
	a.submit(sleepJob, "") // home at a, whose offer is not ordered yet
	offer := a.pending
	a.pending = nil
	mine := b.pending
	b.pending = nil
	b.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
	a.turn(StateEvent{}) // a sees b.2 and declines
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
	r := newRig(t, command.DefaultParams(), 1, 1)
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
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(`{"command":["true"],"retry":{"on_loss":"never"}}`, "")
	r.settle()
	id := b.only()
	held, lost := b.reopen()
	delete(b.running, id)
	res := executor.Result{Cause: executor.Fenced, Started: r.now, Run: time.Second}
	b.ended[id] = res
	b.turn(EndedEvent{id, res}) // the fence passes while there is no quorum
	b.register(held, lost)
	b.lease(time.Hour)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskLost || len(b.history) != 1 {
		t.Errorf("job is %s after %d starts, want lost after one", v.State, len(b.history))
	}
}

// A wall clock that is set by decades made reports that no order would take.
func TestClockStepsStayReportable(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
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
		s.turn(EndedEvent{id, res})
		s.ticks(usageTicks)
	}
	r.settle() // fails if a command does not decode
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("job is %s", v.State)
	}
}

// A job that was acknowledged from the journal is kept when the queue is full.
func TestPromisedJobSurvivesAFullQueue(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.promise()
	mine := a.pending
	a.pending = nil
	full := make([]command.Result, len(mine))
	for k, c := range mine {
		if _, submit := c.Body.(*command.Submit); submit {
			full[k].Jobs = []command.Code{command.TooManyJobs}
		}
	}
	a.turn(ResultEvent{Cmds: mine, Results: full})
	if _, known := a.core.own.Job(2); !known {
		t.Fatal("the acknowledged job is gone")
	}
	a.boot()
	r.now = r.now.Add(2 * publish.FullPause)
	a.turn(TickEvent{})
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("job is %s", v.State)
	}
}

// A site that is given up while it says goodbye has left all the same.
func TestLeaveEndsWhenTheSiteIsGivenUp(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	b := r.sites[1]
	var code command.Code
	done := false
	b.turn(AskEvent(func(c *Core) {
		c.gone = true
		c.out.Add(&command.Leave{}, func(res command.Result, _ StateReader, _ *Effects) { code, done = res.Code, true })
	}))
	r.lose(b)
	b.turn(StateEvent{})
	r.settle()
	if !done || code != command.OldIncarnation {
		t.Errorf("goodbye answered: %v, %s", done, code)
	}
}

// A site that cannot start anything hands work back and pauses, and fails none.
func TestSickSiteFailsNothing(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
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
	r.now = r.now.Add(trouble.MinRest)
	b.turn(TickEvent{})
	r.settle()
	if id := b.only(); id.Job != "a.2" {
		t.Errorf("%s runs", id)
	}
}

// A task that nobody here can run must not keep others from starting at home.
func TestDeclinedTasksDoNotBlockHomeStarts(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.refuse = executor.ErrUnfit
	a.submit(`{"command":["true"],"count":2}`, "") // wider than home: it goes through the queue
	r.settle()
	a.refuse = nil
	i := a.submit(sleepJob, "")
	if a.answers[i].Durability != node.DurableSite || len(a.running) != 1 {
		t.Errorf("answer %+v", a.answers[i])
	}
}

// Found by measuring pauses: a task returned to the site that was still stopping
// its former attempt, was declined for lack of room, and then stayed barred from
// the only site that could run it.
func TestDeclinedForRoomComesBack(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "") // keeps a busy
	a.submit(`{"command":["true"],"retry":{"on_loss":"immediate"}}`, "")
	r.settle()
	old := b.only()
	r.apply(command.Command{ // the state takes it away while its first attempt is here still
		ID: command.ID{Site: "b", Incarnation: b.core.incarnation, Seq: b.core.out.Seq() + 100},
		Body: &command.Complete{Attempts: []command.Ended{{
			AttemptRef: r.state.Assignments("b")[0].AttemptRef,
			Outcome:    command.Lost,
		}}},
	})
	r.settle()
	delete(b.running, old)
	b.turn(EndedEvent{old, executor.Result{Cause: executor.Stopped, Started: r.now, Run: 1}})
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
			s.turn(EndedEvent{id, executor.Result{Cause: executor.Vanished, Detail: "lost: its supervisor died"}})
		},
		"orphaned": func(s *rigSite, id executor.ID) {
			delete(s.running, id)
			s.turn(EndedEvent{id, executor.Result{Cause: executor.Orphaned, Detail: "lost: its supervisor died"}})
		},
		"failed by itself": func(s *rigSite, id executor.ID) { s.finish(id, 1) },
	}
	for name, end := range ends {
		r := newRig(t, command.DefaultParams(), 1)
		a := r.sites[0]
		a.submit(retried, "")
		id := a.only()
		var refused error
		a.turn(CancelEvent{Num: 1, Reply: func(err error) { refused = err }})
		if refused != nil {
			t.Fatal(refused)
		}
		end(a, id)
		r.settle()
		task := a.core.home.Find(1).Tasks[0]
		if len(a.history) != 1 || task.State != fsm.TaskCancelled || task.EndedMs == 0 {
			t.Errorf("%s: started %v, the task is %+v", name, a.history, task)
		}
	}
}

// A job that its client was told to be refused came back with the next start of
// the broker.
func TestRefusedJobStaysRefused(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "") // at home
	i := a.submit(sleepJob, "")
	cmds, results := a.pending, make([]command.Result, len(a.pending))
	a.pending = nil
	for k := range cmds {
		if _, submit := cmds[k].Body.(*command.Submit); submit {
			results[k].Jobs = []command.Code{command.TooManyJobs}
		}
	}
	a.turn(ResultEvent{Cmds: cmds, Results: results})
	if !errors.Is(a.answers[i].Err, node.ErrFull) {
		t.Fatalf("the answer: %+v", a.answers[i])
	}
	a.boot()
	if p := a.core.pubs.Find(2); p != nil {
		t.Errorf("after a restart the refused job is on its way: %+v", p.Spec)
	}
}

// A home task that no machine could take any more held up all behind it.
func TestStuckHomeTaskHoldsUpNobody(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 3)
	a := r.sites[0]
	a.submit(`{"command":["sleep"],"resources":{"cpu":2},"retry":{"max_attempts":3}}`, "")
	wide := a.only()
	a.submit(`{"command":["sleep"],"retry":{"max_attempts":3}}`, "")
	narrow := a.history[1]
	a.turn(CapacityEvent{"local", []executor.Machine{{Name: "a-local", Resources: executor.Resources{MilliCPU: 1000, MemMiB: 1024}}}})
	a.finish(wide, 1)
	a.finish(narrow, 1)
	if task := a.core.home.Find(1).Tasks[0]; task.State != fsm.Queued || task.Reason != homejobs.TooSmall {
		t.Errorf("the wide task: %+v", task)
	}
	if id := a.only(); id.Attempt != 2 || id.Job != narrow.Job {
		t.Errorf("%s runs, want the narrow task's second attempt", id)
	}
}
