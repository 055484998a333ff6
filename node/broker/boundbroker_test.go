package broker

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

func TestBrokersKeepToBounds(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	b.stop(t)
	b.handler = b.handler.reopen()
	b.kind = func(h *fakeHandler) executor.Handler { return boundedFake{h} }
	b.start(t)
	a.accept(t, sleepJob)
	away := a.accept(t, timedJob)
	id := <-b.handler.started
	var as []fsm.Assignment
	b.cfg.Replica.View(func(s *fsm.State) { as = s.Assignments("site-2") })
	if len(as) != 1 || as[0].BoundMs == 0 {
		t.Fatalf("started with %+v in the state, want a bound", as)
	}
	b.handler.mu.Lock()
	fence := b.handler.states[id].Fence
	b.handler.mu.Unlock()
	if fence < executor.Boottime()+int64(timedBound) {
		t.Errorf("fence %d leaves less than the bound", fence)
	}
	b.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	a.await(t, func(s *fsm.State) bool {
		v, ok := s.Job(away.ID)
		return ok && v.State == fsm.TaskSucceeded
	})
}
