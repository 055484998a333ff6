package staging

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// beneath is how anything of a task's is resolved: not out of its folder, by no link, and
// into nothing that is mounted there.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// pin takes hold of what has a name, without opening it: nothing waits, and no device
// hears of it. The caller closes it.
func pin(at int, name string) (fd int, st unix.Stat_t, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath}
	for {
		if fd, err = unix.Openat2(at, name, &how); !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}

// self is a path to what is pinned, whatever has its name by now.
func self(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// reopen opens what is pinned for reading. If its owner has not the right to, and this
// process is its owner, it takes it.
func reopen(pinned int, st *unix.Stat_t, flags int, rights uint32) (*os.File, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	fd, err := unix.Open(self(pinned), flags, 0)
	if errors.Is(err, unix.EACCES) && st.Mode&rights != rights {
		if unix.Chmod(self(pinned), st.Mode&0o7777|rights) == nil {
			fd, err = unix.Open(self(pinned), flags, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), self(pinned)), nil
}

// openFolder opens a folder below another one for listing. st is what is known of it.
func openFolder(at int, path string) (*os.File, error) {
	pinned, st, err := pin(at, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(pinned)
	// Without the right to pass, its names can be read and nothing in it opened.
	if st.Mode&0o700 != 0o700 && os.Geteuid() == int(st.Uid) {
		_ = unix.Chmod(self(pinned), st.Mode&0o7777|0o700) // else what follows says why not
	}
	return reopen(pinned, &st, unix.O_DIRECTORY, 0o700)
}

// kind says what a file is that cannot travel.
func kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	case unix.S_IFDIR:
		return "a folder"
	}
	return "no regular file"
}

// unreadable is an error of the machine's.
func unreadable(path string, err error) error {
	return fmt.Errorf("%w: output %q: %w", executor.ErrUnreadable, path, err)
}
