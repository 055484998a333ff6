package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// keepOutput moves one stream's output to its place, if there is any, and
// returns its size. REQUIRES: no process of the attempt is left.
func (a *attempt) keepOutput(stream int) int64 {
	f := a.out.Files[stream]
	a.out.Finish(stream, a.MaxLog)
	if err := dropExcess(f); err != nil {
		fmt.Fprintf(os.Stderr, "supervise: free what %s allocated beyond its output: %v\n", a.name, err)
	}
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0 // the file serves the next attempt
	}
	defer f.Close()
	a.out.Files[stream] = nil
	place := logPath("../..", a.name, stream)
	if a.inside {
		place = outputName(a.name, stream) // its handler takes it from there
	}
	if err = os.Rename(attempts.Streams[stream], place); err != nil && !a.inside {
		err = saveOutput(f, logPath(filepath.Join(a.slot, "..", ".."), a.name, stream))
	}
	if err != nil {
		// It keeps its size: who reads it hears that it is gone, and not that there was none.
		fmt.Fprintf(os.Stderr, "supervise: keep output of %s: %v\n", a.name, err)
	}
	return st.Size()
}

// saveOutput copies output that cannot be moved, because its file or its place was
// removed, say: it is still open here.
func saveOutput(f *os.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(to, f)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// cleanWork makes the private directory empty and private again, cheaply when
// it still is.
func cleanWork(dir string) error {
	st, err := os.Lstat(dir)
	if err == nil && st.Mode() == os.ModeDir|0o700 && isEmpty(dir) {
		return nil
	}
	if err = watchdog.RemoveTree(dir); err != nil {
		// The next attempt must not see it; it goes with the slot.
		if rerr := os.Rename(dir, fmt.Sprintf("%s-%d", dir, time.Now().UnixNano())); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	return errors.Join(err, os.Mkdir(dir, 0o700))
}

// isEmpty asks the kernel itself: a directory is looked at after each attempt,
// and os would put it into the poller first.
func isEmpty(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var buf [1 << 10]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return false
		}
		if n == 0 {
			return true
		}
		if _, found, _ := unix.ParseDirent(buf[:n], 1, nil); found > 0 { // "." and ".." do not count
			return false
		}
	}
}
