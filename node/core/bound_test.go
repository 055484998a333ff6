package core

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// byTimeout is a handler whose tasks end a minute after their timeout at the
// latest, and nothing else ends them for sure.
var byTimeout = Guard{Bound: func(t executor.Task) (time.Duration, bool) {
	return t.Timeout + time.Minute, t.Timeout > 0
}}

const (
	timedJob   = `{"command":["sleep","1"],"timeout":"10m"}`
	timedBound = 11 * time.Minute
)

// boundedRig has a site a whose machine is taken, and a site b whose handler has
// a bound only; a.2 is on its way to b.
func boundedRig(t *testing.T, job string) (r *rig, a, b *rigSite) {
	t.Helper()
	r = newRig(t, command.DefaultParams(), 1, 1)
	a, b = r.sites[0], r.sites[1]
	b.guard = byTimeout
	b.boot()
	r.settle()
	a.submit(sleepJob, "")
	a.submit(job, "")
	return r, a, b
}

// order orders what a site has proposed, and shows b the state.
func (r *rig) order(s *rigSite) {
	r.t.Helper()
	mine := s.pending
	s.pending = nil
	s.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
	r.sites[1].turn(StateEvent{})
}

// pass lets time go by, in the log and at every site, with leases renewed.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	for ; d > 0; d -= 30 * time.Second {
		r.now = r.now.Add(min(d, 30*time.Second))
		r.apply()
	}
	for _, s := range r.sites {
		if v, _ := r.state.Site(s.name); v.State == fsm.Alive {
			s.lease(time.Hour)
		}
	}
}

func (r *rig) task(job string) fsm.TaskView {
	r.t.Helper()
	id, err := command.ParseJobID(job)
	if err != nil {
		r.t.Fatal(err)
	}
	tasks, _ := r.state.Tasks(id, 0, 1)
	return tasks[0]
}

// deadBy is when the state believes an attempt of the site certainly dead, on
// the rig's boot clock.
func (s *rigSite) deadBy() time.Duration {
	s.rig.t.Helper()
	as := s.rig.state.Assignments(s.name)
	if len(as) != 1 || as[0].BoundMs == 0 {
		s.rig.t.Fatalf("assignments %+v, want one with a bound", as)
	}
	return time.Duration(as[0].BoundMs-s.rig.state.Time())*time.Millisecond + time.Duration(s.rig.boottime())
}

func TestBoundIsKnownBeforeTheStart(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.order(a)
	if len(b.pending) != 1 || len(b.running) != 0 {
		t.Fatalf("%d commands and %d running at b, want its declaration before the start", len(b.pending), len(b.running))
	}
	r.now = r.now.Add(2 * time.Second) // the order takes its time
	b.lease(2 * time.Hour)             // and all is looked at again
	if len(b.running) != 0 {
		t.Fatal("started before the federation knows the bound")
	}
	r.order(b)
	task := b.running[b.only()]
	margin, dead := time.Second, b.deadBy()
	if latest := time.Duration(task.Fence); latest < time.Duration(r.boottime())+timedBound ||
		dead < latest+margin+timedBound/100 {
		t.Errorf("fence at %s, the state waits until %s: want the bound to fit, and margin and drift between", latest, dead)
	}
	b.finish(b.only(), 0)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("the job is %s", v.State)
	}
}

func TestLostSiteWithABoundIsWaitedFor(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.settle()
	dead := b.deadBy()
	r.lose(b)
	r.sites = r.sites[:1] // b never comes back
	if v := r.task("a.2"); v.State != fsm.Stopping || !strings.Contains(v.Reason, "certainly dead within") {
		t.Fatalf("the task is %s (%s), want stopping", v.State, v.Reason)
	}
	a.finish(a.only(), 0)
	r.settle()
	left := dead - time.Duration(r.boottime())
	r.pass(left - time.Millisecond)
	r.settle()
	if v := r.task("a.2"); v.State != fsm.Stopping || len(a.running) != 0 {
		t.Fatalf("a millisecond before the bound the task is %s", v.State)
	}
	r.pass(time.Millisecond)
	a.turn(StateEvent{})
	if v := r.task("a.2"); v.Attempt != 2 || v.Losses != 1 || len(a.running) != 1 {
		t.Errorf("at the bound: attempt %d, %d losses, %d running at a; want the second, after one", v.Attempt, v.Losses, len(a.running))
	}
}

func TestReturningSiteGoesOnWithItsBoundedWork(t *testing.T) {
	for name, back := range map[string]func(*rigSite){
		"the same process": func(b *rigSite) { b.turn(StateEvent{}) },
		"a restart":        func(b *rigSite) { b.boot() },
		"a submission shows the loss": func(b *rigSite) {
			b.submit(sleepJob, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, b := boundedRig(t, timedJob)
			r.settle()
			id := b.only()
			r.lose(b)
			back(b)
			b.lease(time.Hour)
			r.settle()
			if len(b.stops) != 0 || b.only() != id {
				t.Fatalf("stops %v, want the attempt to go on", b.stops)
			}
			b.finish(id, 0)
			r.settle()
			if v := r.task("a.2"); v.State != fsm.TaskSucceeded || v.Attempt != 1 || v.Losses != 0 {
				t.Errorf("the task is %s after attempt %d, %d losses", v.State, v.Attempt, v.Losses)
			}
			if slices.Contains(b.history[1:], id) {
				t.Errorf("b started %s again", id)
			}
		})
	}
}

// It ended while its site was given up: the end is reported, not thrown away.
func TestBoundedWorkThatEndsMeanwhileCounts(t *testing.T) {
	r, _, b := boundedRig(t, timedJob)
	r.settle()
	r.lose(b)
	id := b.only()
	delete(b.running, id)
	res := executor.Result{Started: r.now, Run: time.Second}
	b.ended[id] = res
	b.turn(StateEvent{}, EndedEvent{id, res})
	r.settle()
	if v := r.task("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("the task is %s", v.State)
	}
}

func TestForeignWorkWithoutABoundIsDeclined(t *testing.T) {
	endless := `{"command":["sleep","1"],"timeout":"87840h"}` // ten years
	for job, test := range map[string]struct {
		guard Guard
		want  string
	}{
		sleepJob: {byTimeout, "with a timeout"},
		timedJob: {Guard{}, "neither a watchdog nor a stop bound"},
		endless:  {byTimeout, "longer than a federation can wait for"},
		`{"command":["true"],"timeout":"2s"}`: {Guard{Bound: func(executor.Task) (time.Duration, bool) {
			return math.MaxInt64, true
		}}, "longer than a federation can wait for"},
	} {
		r, a, b := boundedRig(t, job)
		b.guard = test.guard
		b.core.bounds.SetGuard("local", test.guard)
		r.order(a)
		if len(b.pending) != 1 {
			t.Fatalf("%s: %d commands of b, want a decline", job, len(b.pending))
		}
		d, ok := b.pending[0].Body.(*command.Decline)
		if !ok || !strings.Contains(d.Reason, test.want) {
			t.Errorf("%s: b says %+v, want a decline: … %s", job, b.pending[0].Body, test.want)
		}
		r.settle()
		if v := r.task("a.2"); v.State != fsm.Queued || v.Losses != 0 || len(b.running) != 0 {
			t.Errorf("%s: the task is %s, %d losses", job, v.State, v.Losses)
		}
		b.submit(job, "") // its own users' work needs none of it
		r.settle()
		if id := b.only(); id.Job != "b.1" {
			t.Errorf("%s: %s runs at b", job, id)
		}
	}
}

func TestLateDeclarationIsMadeAgain(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.order(a)
	r.now = r.now.Add(time.Minute) // no quorum for longer than the window
	r.order(b)
	if len(b.running) != 0 || len(b.pending) != 1 {
		t.Fatalf("%d running and %d commands at b, want a new declaration", len(b.running), len(b.pending))
	}
	r.order(b)
	if fence := b.running[b.only()].Fence; fence < r.boottime()+int64(timedBound) {
		t.Errorf("fence %s, now %s", time.Duration(fence), time.Duration(r.boottime()))
	}
}

// What the handler finds too late goes back without counting as a failure.
func TestLateStartIsDeclined(t *testing.T) {
	r, _, b := boundedRig(t, timedJob)
	r.settle()
	id := b.only()
	delete(b.running, id)
	b.core.attempts.Find(id).Accepted = false
	b.turn(RefusedEvent{id, executor.ErrLate})
	r.settle()
	if v := r.task("a.2"); v.State != fsm.Queued || v.Failures+v.Losses != 0 {
		t.Errorf("the task is %s with %d failures, %d losses", v.State, v.Failures, v.Losses)
	}
}

func TestRestartReturnsWhatNeverBeganAtOnce(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.order(a)
	mine := b.pending
	r.apply(mine...) // the declaration is in the state, the broker dies before it hears
	b.deadBy()
	b.boot()
	r.settle()
	if id := b.only(); id.Attempt != 2 {
		t.Errorf("%s runs, want the second attempt without a wait", id)
	}
	if v := r.task("a.2"); v.Losses != 0 {
		t.Errorf("%d losses", v.Losses)
	}
}

// The handler lost it, its cluster may not have: only the bound makes it sure.
func TestVanishedBoundedWorkIsWaitedFor(t *testing.T) {
	for name, vanish := range map[string]func(*rigSite, executor.ID){
		"with the machine": func(b *rigSite, _ executor.ID) { b.boot() },
		"while it leaves": func(b *rigSite, id executor.ID) {
			b.core.handingBack = true
			b.turn(EndedEvent{id, executor.Result{Cause: executor.Vanished}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, b := boundedRig(t, timedJob)
			r.settle()
			id := b.only()
			dead := b.deadBy()
			delete(b.running, id)
			vanish(b, id)
			r.settle()
			if v := r.task("a.2"); v.State != fsm.Stopping {
				t.Fatalf("the task is %s", v.State)
			}
			b.boot() // another restart knows nothing of it
			r.settle()
			if v := r.task("a.2"); v.State != fsm.Stopping || len(b.running) != 0 {
				t.Fatalf("the task is %s", v.State)
			}
			r.pass(dead - time.Duration(r.boottime()))
			b.turn(StateEvent{})
			r.settle()
			if id := b.only(); id.Attempt != 2 {
				t.Errorf("%s runs, want the second attempt", id)
			}
		})
	}
}

// A certain end that nobody asked for needs no wait.
func TestStoppedBoundedWorkReturnsAtOnce(t *testing.T) {
	for _, cause := range []executor.Cause{executor.Stopped, executor.Fenced} {
		r, _, b := boundedRig(t, timedJob)
		r.settle()
		id := b.only()
		delete(b.running, id)
		b.turn(EndedEvent{id, executor.Result{Cause: cause, Started: r.now, Run: time.Second}})
		r.settle()
		if again := b.only(); again.Attempt != 2 || r.task("a.2").Losses != 1 {
			t.Errorf("%s runs after %d losses", again, r.task("a.2").Losses)
		}
	}
}

func TestLeaveHandsBackWhatWaitsForItsBound(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.order(a)
	r.now = r.now.Add(time.Second)
	b.turn(AskEvent((*Core).HandBackAll))
	r.settle()
	if v := r.task("a.2"); v.State != fsm.Queued || v.Losses != 0 || len(b.running) != 0 {
		t.Errorf("the task is %s, %d losses", v.State, v.Losses)
	}
}
