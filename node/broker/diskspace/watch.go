// Package diskspace watches how much is free on the file system of the data: a full disk is
// seen before it is full.
package diskspace

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// diskEvery is how often the free space is looked at.
const diskEvery = time.Second

// maxReliefs is how often a look has something go.
const maxReliefs = 16

// Watch knows how much is free. Its answers are those of the last look.
type Watch struct {
	node.Disk
	// Relieve, if set, is called when less than MinFree is free: it has something go of which there is no need, n bytes
	// if possible, in a bounded step, and returns how many that were. It is set before the first look.
	Relieve func(n int64) (freed int64)

	free atomic.Int64 // bytes
	// low from the first look below MinFree until enough is free, which is an
	// eighth more: tasks write all the time, and nobody wants a broker that
	// changes its mind with each of them.
	low atomic.Bool

	mu sync.Mutex // one look at a time
	// blind: the last look failed, so the verdict is an older one's.
	blind bool // guarded by mu
}

// New returns a watch that has not looked yet.
func New(d node.Disk) *Watch {
	if d.Free == nil {
		d.Free = freeBytes
	}
	return &Watch{Disk: d}
}

// freeBytes returns what users that are not root may still write.
func freeBytes(path string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return int64(min(st.Bavail, 1<<40)) * st.Bsize, nil
}

// enough returns from when on a full disk is not full any more.
func (d *Watch) enough() int64 { return d.MinFree + d.MinFree/8 }

// measure measures; changed says whether verdict or sight has changed.
func (d *Watch) measure() (changed bool, err error) {
	if d.Path == "" {
		return false, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	free, err := d.relieved()
	if err != nil {
		changed, d.blind = !d.blind, true
		return changed, err
	}
	changed, d.blind = d.blind, false
	d.free.Store(free)
	switch low := d.low.Load(); {
	case !low && free < d.MinFree, low && free >= d.enough():
		d.low.Store(!low)
		return true, nil
	}
	return changed, nil
}

// relieved measures, and if that is too little again behind each step of what may go.
func (d *Watch) relieved() (free int64, err error) {
	for step := 0; ; step++ {
		free, err = d.Free(d.Path)
		low := free < d.MinFree || d.low.Load() && free < d.enough()
		if err != nil || !low || d.Relieve == nil || step == maxReliefs || d.Relieve(d.enough()-free) == 0 {
			return free, err
		}
	}
}

// Room looks, and returns how many bytes more may be written before the disk is full; store.Unbounded if nobody watches
// it.
func (d *Watch) Room() int64 {
	if d.Path == "" {
		return store.Unbounded
	}
	free, err := d.Free(d.Path)
	if err != nil {
		free = d.free.Load()
	}
	return free - d.MinFree
}

// FreeBytes returns how much was free at the last look.
func (d *Watch) FreeBytes() int64 { return d.free.Load() }

// Full says why no new job is taken, or nil.
func (d *Watch) Full() error {
	if !d.low.Load() {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes free, below min_free %d: new jobs are taken again once %d are free",
		node.ErrStorageFull, d.Path, d.free.Load(), d.MinFree, d.enough())
}

// Run looks again and again until done is closed.
func (d *Watch) Run(done <-chan struct{}, changed func(error)) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.Report(changed)
		case <-done:
			return
		}
	}
}

// Report looks once, and tells what has changed.
func (d *Watch) Report(changed func(error)) {
	if news, err := d.measure(); news {
		changed(err)
	}
}

// Remedy adds to an error that comes from a full disk what helps.
func (d *Watch) Remedy(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w (make room on the file system of %s)", err, d.Path)
	}
	return err
}
