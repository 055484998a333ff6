package kube

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
)

// load is what a pod carries of files.
type load struct {
	// carried: its task has files, or is to leave some. Never changes.
	carried bool
	files   int // that it finds; never changes
	// in is how many bytes its files have. Guarded by workSet.mu until its Job is asked for, and never changes then.
	in int64
	// disk: its node counts what pods write.
	disk bool
	// moved is when its pod was last heard to send, on CLOCK_BOOTTIME.
	moved atomic.Int64
	// receiving: its pod sends now. Guarded by workSet.mu.
	receiving bool
	// told: its watchdog has said how it ended, and why its files were not sent, "" = they were. Guarded by workSet.mu.
	told   bool
	unsent string
}

// Files of an attempt's folder that are about files.
const (
	listFile   = "files"        // those that its task is to find
	senderFile = "sender"       // which life of its container sends what it has left
	partFile   = "left.part"    // what has come of that
	leftFile   = "left"         // all of it
	maxListed  = 64 << 10       // of a line of the first, without content
	framing    = 128 << 20      // what frames may add to the bytes of files
	mostLeft   = 10 << 30       // what a task may leave that no bound was set
	keepFree   = 256 << 20      // of the disk on which it is kept
	least      = 1 << 20        // bytes a second that files travel at, at least
	lookAround = 64 << 20       // bytes between two looks at the disk
	baseFetch  = time.Minute    // to fetch however little
	baseSend   = 10 * baseFetch // to send; a broker that is restarted is waited for
	longest    = 24 * time.Hour // of either
)

// fetching is how long the files of a task may take to come, at most.
func (l *load) fetching() time.Duration {
	if l.files == 0 {
		return 0
	}
	return travel(baseFetch, l.in)
}

// sending is how long those that it leaves may take.
func sending(t *executor.Task) time.Duration {
	if !t.Outputs.Wanted() {
		return 0
	}
	return travel(baseSend, most(t))
}

// travel is how long so many bytes may take.
func travel(base time.Duration, bytes int64) time.Duration {
	return min(base+time.Duration(min(bytes/least, int64(longest/time.Second)))*time.Second, longest)
}

// most is how many bytes a task may leave.
func most(t *executor.Task) int64 { return cmp.Or(t.Outputs.MaxBytes, mostLeft) }

// bytes are those of a pod's files that are known before: its room on its node's disk.
func (w *work) bytes() int64 {
	if !w.carried {
		return 0
	}
	return w.in + w.Task.Outputs.MaxBytes
}

func isCarried(t *executor.Task) bool { return len(t.Files) > 0 || t.Outputs.Wanted() }

// fitFiles says why the files of a task cannot travel.
func (l *leases) fitFiles(t executor.Task) error {
	switch {
	case !isCarried(&t):
		return nil
	case !l.isListening():
		return fmt.Errorf("%w: its files travel to pods by their watchdog, and this site has none: "+
			"run it on another machine, or name kube.watchdog", executor.ErrUnfit)
	}
	if err := errors.Join(executor.CheckFiles(t.Files, false), t.Outputs.Check()); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrUnfit, err)
	}
	return fitWatched(t)
}

// writeFiles notes which files an attempt's task is to find: also for the next life of the broker. A file that is not
// there is its site's trouble.
func (s *starter) writeFiles(w *work) error {
	if !w.carried {
		return nil
	}
	list, bytes, err := carry.ListOf(w.Task.Files)
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	out, err := os.OpenFile(filepath.Join(w.dir, listFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(out)
	for e, i := json.NewEncoder(b), 0; i < len(list) && err == nil; i++ {
		err = e.Encode(&list[i])
	}
	s.works.mu.Lock()
	w.in = bytes
	s.works.mu.Unlock()
	return errors.Join(err, b.Flush(), out.Sync(), out.Close())
}
