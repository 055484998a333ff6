package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

func TestLeaveHandsBackWithoutALoss(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	a.accept(t, sleepJob)
	away := a.accept(t, sleepJob)
	first := <-b.handler.started // not always attempt 1: site-1 may have been given it before its offer was withdrawn
	if err := b.Leave(t.Context(), true, false); err != nil {
		t.Fatal(err)
	}
	if err := b.Leave(t.Context(), true, false); err != nil {
		t.Error("a second leave:", err)
	}
	<-b.Left()
	a.await(t, func(s *fsm.State) bool {
		v, _ := s.Site("site-2")
		tasks, _ := s.Tasks(away.ID, 0, 1)
		return v.State == fsm.Left && tasks[0].State == fsm.Queued && tasks[0].Losses == 0
	})
	b.stop(t)
	b.handler = b.handler.reopen()
	b.start(t) // the site comes back and takes on work again
	if id := <-b.handler.started; id.Job != away.ID.String() || id.Attempt != first.Attempt+1 {
		t.Errorf("%s runs after the return, want the attempt after %s", id, first)
	}
}

// Found by typing it: the leader saw itself gone in the state before it knew that
// its goodbye had been taken, and registered again.
func TestLeadLeavesForGood(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	a.accept(t, sleepJob) // at home
	a.accept(t, sleepJob) // at b
	a.accept(t, sleepJob) // waits
	<-a.handler.started
	if err := a.Leave(t.Context(), true, false); err != nil {
		t.Fatal(err)
	}
	if err := a.Resume(t.Context()); !errors.Is(err, node.ErrLeaving) {
		t.Errorf("resume of a leaving site: %v", err)
	}
	<-a.Left()
	if err := a.query(t.Context(), func(*core.Core) {}); err != nil { // a whole turn later
		t.Fatal(err)
	}
	b.await(t, func(s *fsm.State) bool {
		v, _ := s.Site("site-1")
		return v.State == fsm.Left && v.Incarnation == 1
	})
	if len(a.handler.started) != 0 {
		t.Errorf("%s was started while the site left", <-a.handler.started)
	}
}

func TestLeaveWaitsForWhatRuns(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	a.accept(t, sleepJob)
	away := a.accept(t, sleepJob)
	id := <-b.handler.started
	if err := b.Leave(t.Context(), false, true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Left():
		t.Fatal("the site left while a task ran")
	default:
	}
	var site fsm.SiteView
	a.await(t, func(s *fsm.State) bool {
		site, _ = s.Site("site-2")
		return len(site.Machines) == 0 || site.Machines[0].Exposed.MilliCPU == 0
	})
	if site.Capacity.MilliCPU != 1000 {
		t.Errorf("a draining site shows capacity %d", site.Capacity.MilliCPU)
	}
	b.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	<-b.Left()
	a.await(t, func(s *fsm.State) bool {
		v, ok := s.Job(away.ID)
		return ok && v.State == fsm.TaskSucceeded
	})
}
