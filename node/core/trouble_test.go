package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// declineLast ends what the site's handler took last as one that could not begin.
func (s *rigSite) declineLast() {
	s.rig.t.Helper()
	id := s.history[len(s.history)-1]
	delete(s.running, id)
	s.turn(EndedEvent{id, executor.Result{Cause: executor.Declined, Detail: "not started, by its site's trouble: " + errSick.Error()}})
	s.rig.settle()
}

// A site that keeps declining for its own trouble rests, longer each time up to a
// bound, says so, and is back with the first task that starts.
func TestTroubledSiteRests(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.refuse = errSick
	a.submit(sleepJob, "")
	a.submit(`{"command":["x"],"sites":{"only":["b"]}}`, "")
	r.settle()
	for _, want := range []time.Duration{
		trouble.MinRest, 2 * trouble.MinRest, 4 * trouble.MinRest, 8 * trouble.MinRest,
		trouble.MaxRest, trouble.MaxRest,
	} {
		rests, until := b.core.troubles.Rests, r.boottime()+int64(want)
		if !rests("b-local", until-1) || rests("b-local", until) {
			t.Fatalf("does not rest for %s", want)
		}
		if v, _ := r.state.Site("b"); v.Exposed.MilliCPU != 0 {
			t.Error("it offers room while it rests")
		}
		said := b.core.troubles.Of("local", r.boottime())
		if _, why := b.core.ClosedWhy(); !strings.Contains(said, errSick.Error()) ||
			!strings.Contains(said, fmt.Sprintf("tries again in %s", want)) || !strings.Contains(why, said) {
			t.Errorf("it says %q, and of the site %q", said, why)
		}
		r.now = r.now.Add(want)
		b.turn(TickEvent{})
		r.settle()
	}
	if n := b.core.troubles.Count()["local"]; n != 1 {
		t.Errorf("%d machines in trouble", n)
	}
	b.refuse = nil
	r.now = r.now.Add(trouble.MaxRest)
	b.turn(TickEvent{})
	r.settle()
	if len(b.running) != 1 || len(b.core.troubles.Count()) != 0 || b.core.troubles.Of("", r.boottime()) != "" {
		t.Errorf("%d run; in trouble: %v", len(b.running), b.core.troubles.Count())
	}
	if v := r.job("a.2"); v.State != fsm.Running {
		t.Errorf("the job is %s", v.State)
	}
}

// What a handler took and could not begin goes back to the queue: it is neither a
// failure nor a loss of the task, of another site's or of the site's own.
func TestDeclinedAfterItWasTaken(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(`{"command":["x"],"sites":{"only":["b"]}}`, "")
	r.settle()
	for n := range uint64(2 * homejobs.MaxLosses) { // a loss each would end it
		b.declineLast()
		if v := r.task("a.1"); v.State != fsm.Queued || v.Failures+v.Losses > 0 {
			t.Fatalf("after %d declines the task is %s, with %d failures and %d losses", n+1, v.State, v.Failures, v.Losses)
		}
		r.now = r.now.Add(trouble.MaxRest)
		b.turn(TickEvent{})
		r.settle()
	}
	if got := b.counted(); got != fmt.Sprintf("local trouble %d; ", 2*homejobs.MaxLosses) {
		t.Errorf("counted %q", got)
	}
	b.finish(b.only(), 0)
	r.settle()
	if v := r.job("a.1"); v.State != fsm.TaskSucceeded {
		t.Errorf("the job is %s", v.State)
	}
}

// The same of a site's own task outside the log: it waits for the end of the rest.
func TestDeclinedHomeTaskWaits(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	for range 2 * homejobs.MaxLosses {
		a.declineLast()
		if j, _ := a.core.own.Job(1); j.State != "queued" || len(a.running) != 0 {
			t.Fatalf("the job is %s", j.State)
		}
		want := "nothing is started at this site now: machine a-local could not start tasks and rests, and tries again in "
		w, _ := a.core.own.Why(1)
		if !strings.HasPrefix(w.Summary, want) || !strings.HasSuffix(w.Summary, errSick.Error()) {
			t.Errorf("it waits because %q", w.Summary)
		}
		r.now = r.now.Add(trouble.MaxRest)
		a.turn(TickEvent{})
	}
	a.finish(a.only(), 0)
	if j, _ := a.core.own.Job(1); j.State != "succeeded" {
		t.Errorf("the job is %s", j.State)
	}
}

// TestDeclinedWhileItsBrokerWasAway: what could not begin is no loss, whoever was away
// meanwhile: the broker that ran it, until it is registered, the owner's, declared lost,
// or both.
func TestDeclinedWhileItsBrokerWasAway(t *testing.T) {
	declined := executor.Result{Cause: executor.Declined, Detail: "not started, by its site's trouble: " + errSick.Error()}
	for name, away := range map[string]func(a, b *rigSite, id executor.ID){
		"restarted": func(_, b *rigSite, id executor.ID) {
			b.ended[id] = declined
			b.boot()
		},
		"restarted, before it is registered": func(_, b *rigSite, id executor.ID) {
			b.running[id] = executor.Task{}
			held, lost := b.reopen()
			delete(b.running, id)
			b.turn(EndedEvent{id, declined})
			b.register(held, lost)
		},
		"its owner is lost": func(a, b *rigSite, id executor.ID) {
			b.rig.lose(a)
			b.turn(EndedEvent{id, declined})
			b.rig.settle()
			a.boot()
		},
		"restarted while its owner is lost": func(a, b *rigSite, id executor.ID) {
			b.rig.lose(a)
			b.ended[id] = declined
			b.boot()
			b.rig.settle()
			a.boot()
		},
	} {
		r := newRig(t, command.DefaultParams(), 1, 1)
		a, b := r.sites[0], r.sites[1]
		a.submit(`{"command":["x"],"sites":{"only":["b"]},"retry":{"on_loss":"never"}}`, "")
		r.settle()
		id := b.only()
		delete(b.running, id)
		away(a, b, id)
		r.settle()
		v := r.task("a.1")
		if v.State != fsm.Queued || v.Failures+v.Losses > 0 || len(b.running) > 0 || !b.core.machines.IsResting("b-local") {
			t.Errorf("%s: the task is %s with %d failures and %d losses (%s); b runs %v", name, v.State, v.Failures, v.Losses, v.Reason, b.running)
		}
		r.now = r.now.Add(trouble.MaxRest)
		a.lease(time.Hour)
		b.lease(time.Hour)
		b.turn(TickEvent{})
		r.settle()
		if v = r.task("a.1"); len(b.running) != 1 || b.only().Attempt != 2 {
			t.Errorf("%s: after the rest the task is %s, b runs %v", name, v.State, b.running)
		}
	}
}

// TestOwnTaskDeclinedWhileExpelled: a site that was declared lost keeps its own tasks;
// one that could not begin before it registers again goes back to the queue without a
// loss.
func TestOwnTaskDeclinedWhileExpelled(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(`{"command":["x"],"count":2,"sites":{"only":["a"]}}`, "") // fills a
	r.settle()
	a.submit(`{"command":["x"],"sites":{"only":["a"]},"retry":{"on_loss":"never"}}`, "")
	r.settle()
	a.finish(a.history[0], 0)
	r.settle()
	id := a.history[2]
	if id.Job != "a.1" || id.Token == 0 {
		t.Fatalf("%s runs, not a's own task for the federation", id)
	}
	r.lose(a)
	a.turn(StateEvent{})
	if a.core.incarnation != 0 {
		t.Fatal("it has registered, though a task of another site still runs there")
	}
	delete(a.running, id)
	a.turn(EndedEvent{id, executor.Result{Cause: executor.Declined, Detail: "not started"}})
	foreign := a.only()
	delete(a.running, foreign)
	a.turn(EndedEvent{foreign, executor.Result{Cause: executor.Stopped}})
	r.settle()
	if v := r.task("a.1"); v.State != fsm.Queued || v.Failures+v.Losses > 0 {
		t.Errorf("the task is %s with %d failures and %d losses: %s", v.State, v.Failures, v.Losses, v.Reason)
	}
}
