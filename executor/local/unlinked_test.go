package local

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// TestFilesOfThreadsAreHeld: a file without a name counts in whatever thread's table of descriptors it is open, and
// one that many have open counts once.
func TestFilesOfThreadsAreHeld(t *testing.T) {
	t.Chdir(t.TempDir())
	before := unlinkedHere(t)
	done, ready := make(chan struct{}), make(chan error)
	defer close(done)
	// Not on the first thread: /proc/self/fd is its table, and Go keeps it for the tests that come later.
	go otherThread(func() {
		ready <- holdUnlinked()
		<-done
	})
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	if got := unlinkedHere(t) - before; got != 1<<20 {
		t.Errorf("counted %d bytes of the file, want %d", got, 1<<20)
	}
}

// holdUnlinked opens a file without a name in a table of this thread's own.
func holdUnlinked() error {
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return err
	}
	fd, err := unix.Open("big", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	_, second := unix.Dup(fd)
	_, err = unix.Write(fd, make([]byte, 1<<20))
	return errors.Join(err, second, unix.Fsync(fd), unix.Unlink("big")) // its blocks are known
}

// unlinkedHere returns the bytes that this process has open without a name.
func unlinkedHere(t *testing.T) int64 {
	t.Helper()
	c := (&scratch{most: diskuse.Use{Bytes: 1 << 40, Files: 1 << 20}}).counter()
	if err := c.openIn(os.Getpid(), map[identity]bool{}); err != nil {
		t.Fatal(err)
	}
	return c.Used.Bytes
}

// TestLooksAtDescriptorsEndAtOnce: an end does not wait until all descriptors are counted.
func TestLooksAtDescriptorsEndAtOnce(t *testing.T) {
	c := (&scratch{most: diskuse.Use{Bytes: 1 << 40, Files: 1 << 20}}).counter()
	c.stop.Store(true)
	if err := c.unlinked(); !errors.Is(err, errStopped) {
		t.Errorf("got %v, want %v", err, errStopped)
	}
}
