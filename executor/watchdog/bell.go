package watchdog

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bell wakes a watchdog's loop from another goroutine.
type Bell int // an eventfd

// Bell adds one to the set.
func (s *Sources) Bell(source Source) (Bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("make eventfd: %w", err)
	}
	return Bell(fd), s.Add(fd, source)
}

// Ring wakes the loop until the bell is drained.
func (b Bell) Ring() { _, _ = unix.Write(int(b), []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Drain reports whether it was rung, and forgets that.
func (b Bell) Drain() bool {
	var n [8]byte
	read, err := unix.Read(int(b), n[:])
	return err == nil && read == len(n)
}
