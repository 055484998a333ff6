package broker

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// gauge is a disk whose free space a test sets.
type gauge struct{ atomic.Int64 }

func (g *gauge) disk(least int64) node.Disk {
	return node.Disk{Path: "/data", MinFree: least, Free: func(string) (int64, error) { return g.Load(), nil }}
}

// TestFullDiskRefusesNewJobs: what runs is reported, what waits is cancelled,
// what was accepted before is known and waits. Room mends it.
func TestFullDiskRefusesNewJobs(t *testing.T) {
	a := startSites(t, 1)[0]
	var g gauge
	g.Store(2 << 20)
	a.stop(t)
	a.handler, a.disk = a.handler.reopen(), g.disk(1<<20)
	a.start(t)
	home, waiting := a.accept(t, sleepJob), a.accept(t, sleepJob)
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	keyed := []node.Request{{Spec: spec, Key: "k"}}
	first := a.Submit(t.Context(), keyed)[0]
	if first.Err != nil {
		t.Fatal(first.Err)
	}

	g.Store(0)
	a.Broker.disk.Report(a.diskChanged)
	if got := a.Submit(t.Context(), []node.Request{{Spec: spec}, {Spec: spec, Key: "new"}}); !errors.Is(got[0].Err,
		node.ErrStorageFull) || !errors.Is(got[1].Err, node.ErrStorageFull) {
		t.Errorf("new jobs on a full disk: %+v", got)
	}
	if got := a.Submit(t.Context(), keyed)[0]; got.ID != first.ID || !got.Replayed {
		t.Errorf("a repeat: %+v, want %s", got, first.ID)
	}
	if err := a.Ready(); !errors.Is(err, node.ErrStorageFull) {
		t.Errorf("ready: %v", err)
	}
	if err := a.Live(); err != nil {
		t.Errorf("live: %v", err)
	}
	if err := a.Cancel(t.Context(), waiting.ID); err != nil {
		t.Errorf("cancel: %v", err)
	}
	a.handler.end(<-a.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	for ended := false; !ended; { // each question goes through the loop
		j, err := a.Job(t.Context(), home.ID)
		if err != nil {
			t.Fatal(err)
		}
		ended = j.State == fsm.TaskSucceeded.String()
	}
	if j, err := a.Job(t.Context(), first.ID); err != nil || j.State != fsm.Queued.String() {
		t.Errorf("what waited is %s, %v", j.State, err)
	}
	if _, err := a.DryRun(t.Context(), node.Request{Spec: spec}); !errors.Is(err, node.ErrStorageFull) {
		t.Errorf("asked about a new job: %v", err)
	}

	g.Store(2 << 20)
	a.Broker.disk.Report(a.diskChanged)
	if id := <-a.handler.started; id.Job != first.ID.String() {
		t.Errorf("with room it starts %s, want %s", id, first.ID)
	}
	a.accept(t, sleepJob)
	if err := a.Ready(); err != nil {
		t.Errorf("ready with room: %v", err)
	}
	if m := a.Metrics(t.Context()); m.FreeBytes != 2<<20 {
		t.Errorf("%d bytes are free", m.FreeBytes)
	}
}
