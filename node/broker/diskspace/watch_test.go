package diskspace

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

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files/store"
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
	d := New(g.disk(800))
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
		if full := d.Full(); (full != nil) != c.full || news != c.news || errors.Is(err, errNoDisk) != c.err {
			t.Errorf("step %d, %d free: full %v, news %t, %v; want %+v", i, c.free, full, news, err, c)
		}
	}
	if full := d.Full(); !errors.Is(full, node.ErrStorageFull) || !strings.Contains(full.Error(), "/data has 700 bytes free, below min_free 800") {
		t.Errorf("it says %v", full)
	}
	for _, free := range []node.Disk{{}, g.disk(0)} { // not watched, and without a limit
		d = New(free)
		g.Store(0)
		if news, err := d.measure(); news || err != nil || d.Full() != nil {
			t.Errorf("%+v: %t %v %v", free, news, err, d.Full())
		}
	}
}

// TestWhatMayGoGoesFirst: a disk below the limit is full only when nothing is left that may go, which goes in steps, as
// many as it needs and no more than so many in a look.
func TestWhatMayGoGoesFirst(t *testing.T) {
	var g gauge
	d := New(g.disk(800))
	steps, left := 0, int64(0)
	d.Relieve = func(n int64) int64 {
		step := min(n, left, 50)
		steps++
		left -= step
		g.Add(step)
		return step
	}
	for i, c := range []struct {
		free, left int64
		full       bool
		steps      int
	}{
		{free: 800, left: 1000},
		{free: 799, left: 1000, steps: 1},              // at the limit is enough
		{free: 600, left: 100, full: true, steps: 3},   // nothing is left
		{free: 850, left: 1000, steps: 1},              // 900 are needed once it was full
		{free: 0, left: 5000, steps: 16},               // 800 at the end of the look
		{free: -1, left: 1000},                         // nobody knows
		{free: 100, left: 0, full: true, steps: 1},     // at last
		{free: 100, left: 900, full: false, steps: 16}, // 900
	} {
		g.Store(c.free)
		steps, left = 0, c.left
		_, _ = d.measure()
		if full := d.Full() != nil; full != c.full || steps != c.steps {
			t.Errorf("step %d: full %t after %d steps; want %+v", i, full, steps, c)
		}
	}
	if d.Room() != 100 {
		t.Errorf("there is room for %d above 800 of 900", d.Room())
	}
	if room := New(node.Disk{}).Room(); room != store.Unbounded {
		t.Errorf("of a disk that nobody watches there is room for %d", room)
	}
}

// TestDiskIsLookedAtEverySecond, until the broker stops.
func TestDiskIsLookedAtEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		g.Store(1)
		d, done, told := New(g.disk(10)), make(chan struct{}), make(chan error, 9)
		began := time.Now()
		go d.Run(done, func(err error) { told <- err })
		if err := <-told; err != nil {
			t.Error(err)
		}
		if after := time.Since(began); after != diskEvery || d.Full() == nil {
			t.Errorf("told %s after the start: %v", after, d.Full())
		}
		g.Store(100)
		if err := <-told; err != nil {
			t.Error(err)
		}
		if after := time.Since(began); after != 2*diskEvery || d.Full() != nil {
			t.Errorf("told %s after the start: %v", after, d.Full())
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

// TestFailedWriteNamesItsRemedy: a broker whose write really fails stops, and
// says what helps.
func TestFailedWriteNamesItsRemedy(t *testing.T) {
	d := New(node.Disk{Path: "/data"})
	err := fmt.Errorf("sync journal: %w", syscall.ENOSPC)
	if got := d.Remedy(err); !errors.Is(got, syscall.ENOSPC) || !strings.Contains(got.Error(), "make room on the file system of /data") {
		t.Errorf("it says %v", got)
	}
	if got := d.Remedy(node.ErrStopping); got != node.ErrStopping { //nolint:errorlint // the very same
		t.Errorf("another error becomes %v", got)
	}
}
