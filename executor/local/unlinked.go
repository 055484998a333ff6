package local

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// identity is a file's, by whatever descriptor.
type identity struct{ dev, inode uint64 }

// unlinked counts files that no folder shows any more and that processes of the sandbox have open.
func (c *counter) unlinked() error {
	seen := map[identity]bool{}
	return c.eachNumber("/proc", func(_, process int) error { // of this pid namespace
		return c.openIn(process, seen)
	})
}

// openIn counts what a process has open. A thread may have a table of descriptors of its own, and the first one has
// none any more when it has ended and others have not.
func (c *counter) openIn(process int, seen map[identity]bool) error {
	threads := filepath.Join("/proc", strconv.Itoa(process), "task")
	return c.eachNumber(threads, func(_, thread int) error {
		if thread != process && haveSameFiles(process, thread) {
			return nil
		}
		return c.eachNumber(filepath.Join(threads, strconv.Itoa(thread), "fd"), func(table, fd int) error {
			return c.openFile(table, strconv.Itoa(fd), seen)
		})
	})
}

// haveSameFiles reports whether two threads have one table of descriptors, as most of a process have: false if the
// kernel does not say.
func haveSameFiles(one, other int) bool {
	const tables = 2 // KCMP_FILES
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), tables, 0, 0, 0)
	return errno == 0 && order == 0
}

// openFile counts a descriptor's file if it has no name and was not counted yet.
func (c *counter) openFile(table int, fd string, seen map[identity]bool) error {
	var st unix.Stat_t
	if unix.Fstatat(table, fd, &st, 0) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil //nolint:nilerr // it has gone, or is none
	}
	id := identity{uint64(st.Dev), st.Ino}
	if seen[id] {
		return nil
	}
	seen[id] = true
	return c.Add(st.Blocks * diskuse.BlockSize)
}

// eachNumber calls do for each name of a folder that is a number, with the open folder; there may be very many. What
// has gone has none.
func (c *counter) eachNumber(dir string, do func(folder, number int) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return nil // it has gone
	}
	defer f.Close()
	for name, unread := range watchdog.Names(f) {
		if unread != nil {
			break
		}
		if err := c.pass(); err != nil {
			return err
		}
		number, err := strconv.Atoi(name)
		if err != nil {
			continue // of the kernel, not a process
		}
		if err = do(int(f.Fd()), number); err != nil {
			return err
		}
	}
	return nil
}
