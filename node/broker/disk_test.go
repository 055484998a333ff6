package broker

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// gauge is a disk whose free space a test sets; negative: it cannot be measured.
type gauge struct{ atomic.Int64 }

var errNoDisk = errors.New("no such disk")

func (g *gauge) disk(least int64) node.Disk {
	return node.Disk{Path: "/data", MinFree: least, Free: func(string) (int64, error) {
		if free := g.Load(); free >= 0 {
			return free, nil
		}
		return 0, errNoDisk
	}}
}

// TestDiskVerdicts: full below the limit, not full again only with an eighth
// more, and unchanged while nothing can be measured.
func TestDiskVerdicts(t *testing.T) {
	var g gauge
	d := newDiskWatch(g.disk(800))
	for i, c := range []struct {
		free      int64
		full      bool
		news, err bool
	}{
		{free: 5000},
		{free: 800},
		{free: 799, full: true, news: true},
		{free: 0, full: true},
		{free: 899, full: true},
		{free: -1, full: true, news: true, err: true},
		{free: -1, full: true, err: true},
		{free: 850, full: true, news: true},
		{free: 900, news: true},
		{free: 800},
		{free: 700, full: true, news: true},
	} {
		g.Store(c.free)
		news, err := d.measure()
		if full := d.full(); (full != nil) != c.full || news != c.news || errors.Is(err, errNoDisk) != c.err {
			t.Errorf("step %d, %d free: full %v, news %t, %v; want %+v", i, c.free, full, news, err, c)
		}
	}
	if full := d.full(); !errors.Is(full, node.ErrStorageFull) || !strings.Contains(full.Error(), "/data has 700 bytes free, below min_free 800") {
		t.Errorf("it says %v", full)
	}
	for _, free := range []node.Disk{{}, g.disk(0)} { // not watched, and without a limit
		d = newDiskWatch(free)
		g.Store(0)
		if news, err := d.measure(); news || err != nil || d.full() != nil {
			t.Errorf("%+v: %t %v %v", free, news, err, d.full())
		}
	}
}

// TestDiskIsLookedAtEverySecond, until the broker stops.
func TestDiskIsLookedAtEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		g.Store(1)
		d, done, told := newDiskWatch(g.disk(10)), make(chan struct{}), make(chan error, 9)
		began := time.Now()
		go d.run(done, func(err error) { told <- err })
		if err := <-told; err != nil {
			t.Error(err)
		}
		if after := time.Since(began); after != diskEvery || d.full() == nil {
			t.Errorf("told %s after the start: %v", after, d.full())
		}
		g.Store(100)
		if err := <-told; err != nil {
			t.Error(err)
		}
		if after := time.Since(began); after != 2*diskEvery || d.full() != nil {
			t.Errorf("told %s after the start: %v", after, d.full())
		}
		close(done)
	})
}

// TestFreeBytes asks the real system.
func TestFreeBytes(t *testing.T) {
	dir := t.TempDir()
	if free, err := freeBytes(dir); err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
	if _, err := freeBytes(filepath.Join(dir, "none")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("of a folder that is not there: %v", err)
	}
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
	a.Broker.disk.report(a.diskChanged)
	if got := a.Submit(t.Context(), []node.Request{{Spec: spec}, {Spec: spec, Key: "new"}}); !errors.Is(got[0].Err, node.ErrStorageFull) || !errors.Is(got[1].Err, node.ErrStorageFull) {
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
	a.Broker.disk.report(a.diskChanged)
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

// TestFailedWriteNamesItsRemedy: a broker whose write really fails stops, and
// says what helps.
func TestFailedWriteNamesItsRemedy(t *testing.T) {
	d := newDiskWatch(node.Disk{Path: "/data"})
	err := fmt.Errorf("sync journal: %w", syscall.ENOSPC)
	if got := d.remedy(err); !errors.Is(got, syscall.ENOSPC) || !strings.Contains(got.Error(), "make room on the file system of /data") {
		t.Errorf("it says %v", got)
	}
	if got := d.remedy(node.ErrStopping); got != node.ErrStopping { //nolint:errorlint // the very same
		t.Errorf("another error becomes %v", got)
	}
}
