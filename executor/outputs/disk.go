package outputs

import (
	"os"

	"golang.org/x/sys/unix"
)

// disk is what of the operating system can fail in ways that a test cannot bring about.
type disk struct {
	// open opens a file below a folder, and makes none.
	open func(below *os.Root, name string, flags int) (*os.File, error)
	sync func(*os.File) error
	move func(from string, folder *os.File, to string) error
}

var realDisk = disk{
	open: func(below *os.Root, name string, flags int) (*os.File, error) { return below.OpenFile(name, flags, 0) },
	sync: (*os.File).Sync,
	move: func(from string, folder *os.File, to string) error {
		return unix.Renameat(unix.AT_FDCWD, from, int(folder.Fd()), to)
	},
}
