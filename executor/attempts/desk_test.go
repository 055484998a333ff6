package attempts

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestLock: a folder is one broker's; what holds it for a moment only is waited for.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Lock(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second broker: %v", err)
	}
	fd, err := unix.Dup(int(first.Fd())) // as a process has it that is being made
	if err != nil {
		t.Fatal(err)
	}
	copied := os.NewFile(uintptr(fd), "copy")
	if err = first.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // it is waited for as long as Lock says, however busy the machine
		time.AfterFunc((lockTries-2)*lockPause, func() { copied.Close() })
		next, err := Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err = next.Close(); err != nil {
			t.Error(err)
		}
	})
}
