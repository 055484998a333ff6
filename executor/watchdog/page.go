package watchdog

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize is one page: a boot id at 64, the fence at 0.
const pageSize = 4096

// Page is one number shared by a handler and all watchdogs of its attempts
// through a mapped file: the fence of all foreign attempts. Moving it is one
// store, and a watchdog reads it without asking anyone.
type Page struct {
	page []byte
	// at is CLOCK_BOOTTIME nanoseconds. Invariant: only grows within a boot.
	at *atomic.Int64
}

// OpenPage maps the file for writing, and makes it; a fence of an earlier boot is
// void, since the clock began again. The caller closes both.
func OpenPage(path string) (*Page, *os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open fence: %w", err)
	}
	// Written, not only truncated: a page without a block would fault on a full disk.
	boot := []byte(BootID())
	was := make([]byte, len(boot))
	if _, err = f.ReadAt(was, 64); err != nil || string(was) != string(boot) {
		page := make([]byte, pageSize)
		copy(page[64:], boot)
		if _, err = f.WriteAt(page, 0); err != nil {
			f.Close()
			return nil, nil, fmt.Errorf("write fence: %w", err)
		}
	}
	fe, err := mapPage(int(f.Fd()), unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return fe, f, nil
}

// MapPage maps an open page for reading.
func MapPage(fd int) (*Page, error) { return mapPage(fd, unix.PROT_READ) }

func mapPage(fd, prot int) (*Page, error) {
	page, err := unix.Mmap(fd, 0, pageSize, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map fence: %w", err)
	}
	// Best effort: a locked page can be read while the disk is stalled.
	_ = unix.Mlock(page)
	return &Page{page: page, at: (*atomic.Int64)(unsafe.Pointer(&page[0]))}, nil
}

// Extend moves the fence to at least boottime.
func (p *Page) Extend(boottime int64) {
	for {
		was := p.at.Load()
		if was >= boottime || p.at.CompareAndSwap(was, boottime) {
			return
		}
	}
}

// Load returns the fence now.
func (p *Page) Load() int64 { return p.at.Load() }

// Boot returns the start of the machine for which the page counts.
func (p *Page) Boot() string { return string(bytes.TrimRight(p.page[64:128], "\x00")) }

// Close unmaps the page.
func (p *Page) Close() error { return unix.Munmap(p.page) }
