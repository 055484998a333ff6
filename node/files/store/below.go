package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// resolve is how names are found: no link leads out of the store's folder. The system walks to them in one call; to
// walk folder by folder, as os.Root does, took a third of the time of a small file in the cache.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// openBelow opens a name. Where the system has no openat2, os.Root does it.
func (d *disk) openBelow(name string, flags int, mode fs.FileMode) (*os.File, error) {
	fd, err := d.descriptor(name, flags, mode)
	if cannot(err) {
		return d.root.OpenFile(name, flags, mode)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// cannot reports that the system, or what it has been forbidden by, has no openat2.
func cannot(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

// descriptor opens a name. The error is a fs.PathError.
func (d *disk) descriptor(name string, flags int, mode fs.FileMode) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(mode.Perm()), Resolve: resolve}
	closed := d.with(func(folder int) {
		for {
			// EAGAIN: something was renamed meanwhile, and the system is not sure that nothing led out.
			if fd, err = unix.Openat2(folder, name, &how); !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
				return
			}
		}
	})
	if err = errors.Join(closed, err); err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// with calls f with the descriptor of the store's folder, which stays open meanwhile.
func (d *disk) with(f func(folder int)) error {
	c, err := d.folder.SyscallConn()
	if err == nil {
		err = c.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		return os.ErrClosed // nothing else keeps it from being used
	}
	return nil
}

// in calls f with the descriptor of a folder below the store's, which is closed then.
func (d *disk) in(name string, f func(fd int) error) error {
	fd, err := d.descriptor(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		return errors.Join(f(fd), unix.Close(fd))
	}
	if !cannot(err) {
		return err
	}
	dir, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f(int(dir.Fd())), dir.Close())
}

func (d *disk) renameBelow(from, to string) error {
	old, above := path.Dir(from), path.Dir(to)
	return d.in(old, func(source int) error {
		rename := func(target int) error {
			err := unix.Renameat(source, path.Base(from), target, path.Base(to))
			if err != nil {
				err = &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
			}
			return err
		}
		if old == above {
			return rename(source)
		}
		return d.in(above, rename)
	})
}

// removeBelow removes a file, or an empty folder.
func (d *disk) removeBelow(name string) error {
	return d.in(path.Dir(name), func(folder int) error {
		err := unix.Unlinkat(folder, path.Base(name), 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(folder, path.Base(name), unix.AT_REMOVEDIR)
		}
		if err != nil {
			err = &fs.PathError{Op: "remove", Path: name, Err: err}
		}
		return err
	})
}

func (d *disk) touchBelow(name string, used time.Time) error {
	both := []unix.Timespec{unix.NsecToTimespec(used.UnixNano()), unix.NsecToTimespec(used.UnixNano())}
	return d.in(path.Dir(name), func(folder int) error {
		return unix.UtimesNanoAt(folder, path.Base(name), both, unix.AT_SYMLINK_NOFOLLOW)
	})
}
