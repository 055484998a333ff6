package local

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// Scratch is what an attempt in a sandbox may have on the disk: in its work folder, /tmp and /var/tmp, and beyond the
// end of its output.

// noScratch is a supervisor's argument for no bound.
const noScratch = -1

// scratch watches one attempt's. Its looks are taken in a goroutine: a stalled disk holds up no clock.
type scratch struct {
	most   diskuse.Use
	before diskuse.Use // free at the start
	next   int64       // CLOCK_BOOTTIME of the next look
	thread *sideThread
	out    []*os.File
	busy   atomic.Bool   // a look is under way
	ended  chan struct{} // closed at its end
	stop   atomic.Bool
	said   atomic.Pointer[string] // why the attempt must end
	took   atomic.Int64           // nanoseconds of the last look

	freezer *freezer // nil = the task cannot be frozen
	stillAt int64    // CLOCK_BOOTTIME from which it may be again
}

// newScratch bounds an attempt that begins to so many bytes, 0 = a share of what is free.
func newScratch(bytes int64, out []*os.File, thread *sideThread) (*scratch, error) {
	free, err := diskuse.Free(".")
	if err != nil {
		return nil, fmt.Errorf("measure the room for scratch: %w", err)
	}
	return &scratch{
		before: free, out: out, thread: thread, most: free.Bound(bytes),
		next: executor.Boottime() + int64(diskuse.NextLook(0)), // short tasks go without
	}, nil
}

// boundScratch begins to bound what the attempt has on the disk, if it is in a sandbox.
func (a *attempt) boundScratch() (err error) {
	if a.inside && a.room >= 0 {
		a.scratch, err = newScratch(a.room, a.out.Files[:], &a.looks)
	}
	if a.scratch != nil {
		a.scratch.freezer = a.group.freezer()
	}
	return err
}

// look has the disk looked at when it is time, and returns why the attempt must end, "" = it need not.
func (s *scratch) look(now int64) string {
	if s == nil {
		return ""
	}
	if why := s.said.Load(); why != nil {
		return *why
	}
	if now >= s.next && !s.busy.Swap(true) {
		s.next = now + int64(diskuse.NextLook(time.Duration(s.took.Load())))
		s.ended = make(chan struct{})
		go func(ended chan struct{}) {
			defer close(ended)
			_ = s.thread.do(func() error {
				s.measure()
				return nil
			})
			s.took.Store(executor.Boottime() - now)
			s.busy.Store(false)
		}(s.ended)
	}
	return ""
}

// finish waits for the last look. REQUIRES: nothing must be ended in time any more.
func (s *scratch) finish() {
	if s == nil || s.ended == nil {
		return
	}
	s.stop.Store(true)
	<-s.ended
	s.freezer.thaw()
}

// errStopped ends a look early.
var errStopped = errors.New("stopped")

// measure counts all that the attempt has, until it is too much.
func (s *scratch) measure() {
	s.freezer.thaw()
	c := s.counter()
	began := executor.Boottime()
	err := c.all()
	if took := time.Duration(executor.Boottime() - began); err == nil && s.suspects(c.Used, took) {
		c = s.counter()
		err = s.countStill(c, took)
	}
	if errors.Is(err, diskuse.ErrOver) {
		why := c.Why
		s.said.Store(&why)
	}
}

// all counts everything.
func (c *counter) all() error {
	err := c.folders()
	if err == nil {
		err = c.beyond()
	}
	if err == nil && c.shrunk() {
		err = c.unlinked()
	}
	return err
}

// shrunk reports whether the disk has lost half of the bound since the start: only then it may hold
// much that no folder shows.
func (s *scratch) shrunk() bool { return s.lost() > s.most.Bytes/2 }

// lost returns how much less is free than at the start, by whoever it is.
func (s *scratch) lost() int64 {
	free, err := diskuse.Free(".")
	if err != nil {
		return 0
	}
	return s.before.Bytes - free.Bytes
}
