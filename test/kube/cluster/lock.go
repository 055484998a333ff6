package cluster

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder waits until nobody else has locked a folder, also in another process. It needs
// no file of its own that would be left, and the lock ends with the process.
func lockFolder(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("lock a folder: %w", err)
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock folder %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
