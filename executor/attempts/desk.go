package attempts

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Desk is what a handler whose attempts have watchdogs holds open in its folder as
// long as it lives.
type Desk struct {
	Fence     *watchdog.Page
	FenceFile *os.File // of Fence, for those that inherit it
	Notices   *Notices
	lock      *os.File
}

// OpenDesk takes a folder that is there: ErrInUse if another broker has it. fence
// is the fence's place below it.
func OpenDesk(dir, fence string) (*Desk, error) {
	d := &Desk{}
	if err := d.open(dir, fence); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Desk) open(dir, fence string) (err error) {
	if d.lock, err = Lock(dir); err != nil {
		return err
	}
	if d.Fence, d.FenceFile, err = watchdog.OpenPage(filepath.Join(dir, fence)); err != nil {
		return err
	}
	d.Notices, err = OpenNotices()
	return err
}

// IsFenced reports whether an attempt's fence has passed, by which it would have been ended.
func (d *Desk) IsFenced(t executor.Task) bool {
	return t.Fence != 0 && executor.Boottime() >= max(t.Fence, d.Fence.Load())
}

// Tries to lock a folder, and the pause between two: a process that the last broker
// was just making has the lock, too, until it has become another program.
const (
	lockTries = 25
	lockPause = 20 * time.Millisecond
)

// Lock takes a folder that is there as long as the file is open: ErrInUse if another
// broker has it.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		<-time.After(lockPause)
	}
	return nil, errors.Join(ErrInUse, f.Close())
}

// Close lets go of the folder. REQUIRES: nobody uses Fence or Notices any more.
func (d *Desk) Close() {
	if d.Notices != nil {
		d.Notices.Close()
	}
	if d.Fence != nil {
		_ = d.Fence.Close()
	}
	for _, f := range []*os.File{d.FenceFile, d.lock} {
		if f != nil {
			f.Close()
		}
	}
}
