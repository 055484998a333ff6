package local

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenceSize is one page: a boot id at 64, the fence at 0.
const fenceSize = 4096

// fence is one number shared by a handler and all its supervisors through a
// mapped file: the fence of all foreign attempts. Moving it is one store, and
// a supervisor reads it without asking anyone.
type fence struct {
	page []byte
	// at is CLOCK_BOOTTIME nanoseconds. Invariant: only grows within a boot.
	at *atomic.Int64
}

// openFence maps the file; a fence of an earlier boot is void, since the clock
// began again.
func openFence(path string) (*fence, *os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open fence: %w", err)
	}
	// Written, not only truncated: a page without a block would fault on a full disk.
	boot := []byte(bootID())
	was := make([]byte, len(boot))
	if _, err = f.ReadAt(was, 64); err != nil || string(was) != string(boot) {
		page := make([]byte, fenceSize)
		copy(page[64:], boot)
		if _, err = f.WriteAt(page, 0); err != nil {
			f.Close()
			return nil, nil, fmt.Errorf("write fence: %w", err)
		}
	}
	fe, err := mapFence(int(f.Fd()), unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return fe, f, nil
}

func mapFence(fd, prot int) (*fence, error) {
	page, err := unix.Mmap(fd, 0, fenceSize, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map fence: %w", err)
	}
	// Best effort: a locked page can be read while the disk is stalled.
	_ = unix.Mlock(page)
	return &fence{page: page, at: (*atomic.Int64)(unsafe.Pointer(&page[0]))}, nil
}

// extend moves the fence to at least boottime.
func (f *fence) extend(boottime int64) {
	for {
		was := f.at.Load()
		if was >= boottime || f.at.CompareAndSwap(was, boottime) {
			return
		}
	}
}

func (f *fence) load() int64 { return f.at.Load() }

func (f *fence) close() error { return unix.Munmap(f.page) }
