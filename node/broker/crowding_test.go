package broker

import (
	"context"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// weighedFake has attempts take so many MiB of the disk: by their job, and one more for each task's index.
type weighedFake struct {
	collectingFake
	mib map[string]int64
}

// Weigh implements executor.Weigher.
func (h weighedFake) Weigh(_ context.Context, id executor.ID) int64 {
	return (h.mib[id.Job] + int64(id.Task)) << 20
}

// setTold says when one was told to end last, from when on no other one is for an hour.
func (c *crowding) setTold(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.gone, c.rest = at, at, time.Hour
}

// TestLargestOfOthersEndsOnAFullDisk: while the disk is full other sites' tasks end, one at a time, that which has most
// beyond what was reserved for its outputs first; it is a loss of its task. This site's own runs on, whatever it has,
// and so does one that has next to nothing.
func TestLargestOfOthersEndsOnAFullDisk(t *testing.T) {
	sites := startSites(t, 1, 5)
	a, b := sites[0], sites[1]
	var g gauge
	g.Store(100 << 30)
	mib := map[string]int64{}
	for _, s := range sites {
		s.stop(t)
		s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
		s.kind = func(h *fakeHandler) executor.Handler { return weighedFake{collectingFake{fencedFake{h}}, mib} }
		if s == b {
			s.disk = g.disk(1 << 20)
		}
		s.start(t)
	}
	b.crowding.setTold(time.Time{})
	a.accept(t, sleepJob)
	<-a.handler.started
	own := b.accept(t, sleepJob).ID
	<-b.handler.started
	plain := a.accept(t, `{"command":["sleep","1"],"count":2}`).ID // 300 and 301 MiB
	reserved := a.accept(t, `{"command":["sleep","1"],"outputs":{"optional":["y"],"max":"700Mi"}}`).ID
	small := a.accept(t, sleepJob).ID
	for range 4 {
		<-b.handler.started
	}
	mib[own.String()], mib[plain.String()], mib[reserved.String()], mib[small.String()] = 1000, 300, 900, 0
	b.crowding.look()
	if len(b.handler.stopped) > 0 {
		t.Fatal("a task is ended though there is room")
	}

	g.Store(0)
	b.Broker.disk.Report(b.diskChanged)
	b.crowding.look()
	first := <-b.handler.stopped
	if first.Job != plain.String() || first.Task != 1 {
		t.Fatalf("%s is ended first, want the second of %s", first, plain)
	}
	b.crowding.look()
	if len(b.handler.stopped) > 0 {
		t.Fatal("another one is ended before the first had time to")
	}
	b.handler.end(first, executor.Result{Cause: executor.Stopped, Detail: "the disk is full", Started: time.Now(), Run: time.Second})
	a.await(t, func(s *fsm.State) bool {
		tasks, _ := s.Tasks(plain, 1, 2)
		return tasks[0].Losses == 1
	})
	for _, want := range []command.JobID{plain, reserved} {
		b.crowding.setTold(time.Time{})
		b.crowding.look()
		next := <-b.handler.stopped
		if next.Job != want.String() {
			t.Errorf("%s is ended, want one of %s", next, want)
		}
		b.handler.end(next, executor.Result{Cause: executor.Stopped, Started: time.Now(), Run: time.Second})
		a.await(t, func(s *fsm.State) bool {
			tasks, _ := s.Tasks(want, 0, 1)
			return tasks[0].Losses == 1
		})
	}
	b.crowding.setTold(time.Time{})
	b.crowding.look()
	if len(b.handler.stopped) > 0 {
		t.Errorf("%s is ended, too", <-b.handler.stopped)
	}
}
