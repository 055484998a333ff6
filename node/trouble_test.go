package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// declineLast ends what the site's handler took last as one that could not begin.
func (s *rigSite) declineLast() {
	s.rig.t.Helper()
	id := s.history[len(s.history)-1]
	delete(s.running, id)
	s.turn(endedEvent{id, executor.Result{Cause: executor.Declined, Detail: "not started, by its site's trouble: " + errSick.Error()}})
	s.rig.settle()
}

// A site that keeps declining for its own trouble rests, longer each time up to a
// bound, says so, and is back with the first task that starts.
func TestTroubledSiteRests(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.refuse = errSick
	a.submit(sleepJob, "")
	a.submit(`{"command":["x"],"sites":{"only":["b"]}}`, "")
	r.settle()
	for _, want := range []time.Duration{minRest, 2 * minRest, 4 * minRest, 8 * minRest, maxRest, maxRest} {
		x := b.core.troubles.by["b-local"]
		if x.pause != want || x.until != r.boottime()+int64(want) {
			t.Fatalf("rests for %s, want %s", x.pause, want)
		}
		if v, _ := r.state.Site("b"); v.Exposed.MilliCPU != 0 {
			t.Error("it offers room while it rests")
		}
		said := b.core.troubles.of("local", r.boottime())
		if why := b.core.closedWhy(); !strings.Contains(said, errSick.Error()) || !strings.Contains(said, fmt.Sprintf("tries again in %s", want)) || !strings.Contains(why, said) {
			t.Errorf("it says %q, and of the site %q", said, why)
		}
		r.now = r.now.Add(want)
		b.turn(tickEvent{})
		r.settle()
	}
	if n := b.core.troubles.count()["local"]; n != 1 {
		t.Errorf("%d machines in trouble", n)
	}
	b.refuse = nil
	r.now = r.now.Add(maxRest)
	b.turn(tickEvent{})
	r.settle()
	if len(b.running) != 1 || len(b.core.troubles.by) != 0 || b.core.troubles.of("", r.boottime()) != "" {
		t.Errorf("%d run; in trouble: %v", len(b.running), b.core.troubles.by)
	}
	if v := r.job("a.2"); v.State != fsm.Running {
		t.Errorf("the job is %s", v.State)
	}
}

// What a handler took and could not begin goes back to the queue: it is neither a
// failure nor a loss of the task, of another site's or of the site's own.
func TestDeclinedAfterItWasTaken(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(`{"command":["x"],"sites":{"only":["b"]}}`, "")
	r.settle()
	for n := range uint64(2 * maxLosses) { // a loss each would end it
		b.declineLast()
		if v := r.task("a.1"); v.State != fsm.Queued || v.Failures+v.Losses > 0 {
			t.Fatalf("after %d declines the task is %s, with %d failures and %d losses", n+1, v.State, v.Failures, v.Losses)
		}
		r.now = r.now.Add(maxRest)
		b.turn(tickEvent{})
		r.settle()
	}
	if got := b.counted(); got != fmt.Sprintf("local trouble %d; ", 2*maxLosses) {
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
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	for range 2 * maxLosses {
		a.declineLast()
		if j, _ := a.core.ownJob(1); j.State != "queued" || len(a.running) != 0 {
			t.Fatalf("the job is %s", j.State)
		}
		r.now = r.now.Add(maxRest)
		a.turn(tickEvent{})
	}
	a.finish(a.only(), 0)
	if j, _ := a.core.ownJob(1); j.State != "succeeded" {
		t.Errorf("the job is %s", j.State)
	}
}

// A decline that a restarted broker finds, before the federation knows it, costs the
// task a loss at most.
func TestDeclinedWhileItsBrokerWasAway(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(`{"command":["x"],"sites":{"only":["b"]}}`, "")
	r.settle()
	id := b.only()
	delete(b.running, id)
	b.ended[id] = executor.Result{Cause: executor.Declined, Detail: "not started"}
	b.boot()
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Running || b.only().Attempt != 2 {
		t.Errorf("the job is %s, b runs %v", v.State, b.running)
	}
}

// Only the machine in trouble rests; one that was begun before its rest and starts
// during it is no sign of health.
func TestOnlyTheMachineInTroubleRests(t *testing.T) {
	x := newTroubles()
	x.begin("node-1", "kube", "no space", 100)
	if !x.rests("node-1", 101) || x.rests("node-2", 101) {
		t.Error("the wrong machine rests")
	}
	x.end("node-1", 99)
	if !x.rests("node-1", 101) {
		t.Error("an older start ended the rest")
	}
	x.begin("node-1", "kube", "no space at all", 102)
	if got := x.by["node-1"]; got.pause != minRest || got.why != "no space at all" {
		t.Errorf("declined during its rest: %+v", got)
	}
	x.begin("local", "local", "no processes", 102)
	if x.of("kube", 102) == "" || strings.Contains(x.of("kube", 102), "local") || x.count()["kube"] != 1 {
		t.Errorf("of the handler: %q", x.of("kube", 102))
	}
	x.keep(map[string]machine{"local": {}})
	if x.rests("node-1", 103) || !x.rests("local", 103) {
		t.Error("a machine that is gone is remembered, or one that is not is forgotten")
	}
	x.end("local", 102+int64(minRest))
	if x.rests("local", 103) {
		t.Error("it rests after a start")
	}
}
