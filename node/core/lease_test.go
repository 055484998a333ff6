package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
)

// lose has the federation give a site up, as the leader would.
func (r *rig) lose(s *rigSite) {
	r.t.Helper()
	v, _ := r.state.Site(s.name)
	by := r.sites[0]
	if by == s {
		by = r.sites[1]
	}
	by.turn(VerdictEvent{Verdicts{Term: 1, Lost: []coord.Renewal{{Site: s.name, Incarnation: v.Incarnation}}}})
	pending := s.pending // the lost site hears and says nothing meanwhile
	s.pending = nil
	for len(by.pending) > 0 {
		mine := by.pending
		by.pending = nil
		by.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
	}
	s.pending = pending
	if v, _ = r.state.Site(s.name); v.State != fsm.SiteGone {
		r.t.Fatalf("%s is not lost", s.name)
	}
}

func TestForeignWorkNeedsALease(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a, b := r.sites[0], r.sites[1]
	r.now = r.now.Add(2 * time.Hour) // all leases are over
	a.lease(time.Hour)
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	if len(b.running) != 0 {
		t.Fatal("b started another site's task without a lease")
	}
	b.lease(6 * time.Second)
	task := b.running[b.only()]
	if want := r.boottime() + int64(6*time.Second); task.Fence != want || b.fence != want {
		t.Errorf("fence %d, told %d, want %d", task.Fence, b.fence, want)
	}
	r.now = r.now.Add(time.Second)
	b.lease(6 * time.Second)
	if want := r.boottime() + int64(6*time.Second); b.fence != want {
		t.Errorf("after the renewal the fence is %d, want %d", b.fence, want)
	}
	if home := a.running[a.only()]; home.Fence != 0 {
		t.Error("a site's own task has a fence")
	}
}

func TestLeaseNeverGoesBack(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	until := a.core.lease.until
	a.lease(time.Second)
	a.turn(LeaseEvent{Incarnation: 99, Until: until * 2})
	if a.core.lease.until != until {
		t.Errorf("lease until %d, want %d", a.core.lease.until, until)
	}
}

func TestLostSitesWorkMovesAndItsOwnWaits(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1, 1)
	a, b, c := r.sites[0], r.sites[1], r.sites[2]
	a.submit(sleepJob, "") // home
	b.submit(sleepJob, "") // home
	b.submit(`{"command":["true"],"count":2,"sites":{"only":["b"]}}`, "")
	r.settle()
	a.submit(sleepJob, "") // at c
	r.settle()
	b.finish(b.only(), 0)
	r.settle() // now b runs b.2/0 for itself; b.2/1 waits
	foreign := c.only()
	r.lose(c)
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Fatalf("the lost site's task is %s, want queued", v.State)
	}
	r.lose(b)
	if v := r.job("b.2"); v.State != fsm.Withdrawn || v.Counts[fsm.Withdrawn] != 2 {
		t.Fatalf("the absent owner's job is %s %v, want withdrawn", v.State, v.Counts)
	}
	// c comes back: it stops the foreign task before it registers again.
	c.turn(StateEvent{})
	if len(c.stops) != 1 || c.stops[0] != foreign {
		t.Fatalf("stops at c: %v, want %s", c.stops, foreign)
	}
	if v, _ := r.state.Site("c"); v.State != fsm.SiteGone {
		t.Fatal("c registered while a foreign task still ran")
	}
	delete(c.running, foreign)
	c.turn(EndedEvent{foreign, executor.Result{Cause: executor.Stopped, Started: r.now, Run: 1}})
	// b comes back: what it runs for itself goes on.
	own := b.only()
	b.turn(StateEvent{})
	r.settle()
	b.lease(2 * time.Hour)
	c.lease(2 * time.Hour)
	r.settle()
	if again := c.only(); again.Job != "a.2" || again.Attempt != 2 {
		t.Errorf("at c runs %s, want the second attempt of a.2", again)
	}
	if b.only() != own {
		t.Errorf("at b runs %s, want %s still", b.only(), own)
	}
	b.finish(own, 0)
	r.settle()
	b.finish(b.only(), 0)
	r.settle()
	if v := r.job("b.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("b.2 is %s %v", v.State, v.Counts)
	}
}

func TestWhatWasSaidTooLateIsSaidAgain(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	i := a.submit(sleepJob, "") // proposed, never ordered
	r.lose(a)
	r.settle() // the proposal comes after the loss
	if got := a.answers[i]; got.Err != nil || got.Durability != node.DurableFederation {
		t.Fatalf("answer %+v", got)
	}
	if v := r.job("a.2"); v.State == fsm.Withdrawn {
		t.Errorf("the job is %s after its owner's return", v.State)
	}
}

func TestASiteAloneServesItsOwnUsers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 2)
	a := r.sites[0]
	sent := a.submit(`{"command":["true"],"count":9}`, "") // sent; the quorum goes before it is ordered
	lostCommands := a.pending
	r.now = r.now.Add(2 * time.Hour)
	a.turn(TickEvent{})
	if got := a.answers[sent]; got.Err != nil || got.Durability != node.DurableSite {
		t.Fatalf("alone, the sent job is answered %+v", got)
	}
	if len(a.running) != 0 {
		t.Fatal("alone, the site started what may have been sent")
	}
	a.submit(`{"command":["true"],"count":3}`, "")
	a.submit(sleepJob, "")
	if len(a.running) != 2 {
		t.Fatalf("%d of the site's own tasks run, want 2", len(a.running))
	}
	for id := range a.running {
		a.finish(id, 0)
		break
	}
	if view, _ := a.core.own.Job(2); view.Counts["running"]+view.Counts["assigned"] != 2 || view.Counts["succeeded"] != 1 {
		t.Errorf("a.2 has %v", view.Counts)
	}
	a.boot() // even over a restart without a quorum
	a.pending = append(lostCommands, a.pending...)
	r.settle()
	if v := r.job("a.3"); v.State == fsm.Withdrawn {
		t.Errorf("the job that never started is %s, want it published", v.State)
	}
	if _, home := a.core.own.Job(2); !home {
		t.Error("the job that has started at home left it")
	}
	if v := r.job("a.1"); v.Counts[fsm.Queued] == 9 {
		t.Error("the sent job waits although b is free")
	}
}
