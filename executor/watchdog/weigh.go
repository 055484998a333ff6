package watchdog

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// MaxDepth is how deep Weigh goes: deeper folders would have to be counted by moving them.
	MaxDepth = 256
	// BlockSize is the unit in which the system counts what a file takes.
	BlockSize = 512
)

// ErrDeep reports folders that are nested deeper than MaxDepth.
var ErrDeep = errors.New("folders are nested too deep")

// Weigh calls add with what each name below an open folder takes on its disk in bytes, those of folders, too, but for
// what is mounted there. Of several names of a file each counts a part, and what goes meanwhile counts nothing. It
// follows no link. The error is add's, ErrDeep, or the system's about the folder itself.
func Weigh(folder *os.File, add func(bytes int64) error) error {
	var st unix.Statx_t
	if err := unix.Statx(int(folder.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	return weighing{st.Mnt_id, add}.folder(folder, 0)
}

// weighing is one walk.
type weighing struct {
	mount uint64
	add   func(bytes int64) error
}

// folder goes through what is in a folder of the mount.
func (w weighing) folder(f *os.File, depth int) error {
	if depth > MaxDepth {
		return ErrDeep
	}
	for name, unread := range Names(f) {
		if unread != nil {
			break
		}
		if err := w.entry(f, name, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one name of a folder, and what is in it.
func (w weighing) entry(f *os.File, name string, depth int) error {
	var st unix.Statx_t
	how := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	const wanted = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID
	if unix.Statx(int(f.Fd()), name, how, wanted, &st) != nil || st.Mnt_id != w.mount {
		return nil // it has gone, or is another's
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	bytes := int64(st.Blocks) * BlockSize
	if !isFolder {
		bytes /= max(int64(st.Nlink), 1) // each of its names counts a part
	}
	if err := w.add(bytes); err != nil || !isFolder {
		return err
	}
	sub, err := OpenFolder(int(f.Fd()), name)
	if err != nil {
		return nil // it has gone
	}
	defer sub.Close()
	return w.folder(sub, depth+1)
}

// OpenFolder opens a folder in another one, which may be unix.AT_FDCWD, for reading; it follows no link.
func OpenFolder(in int, name string) (*os.File, error) {
	fd, err := unix.Openat(in, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// WeighFolders returns what folders of a task take on the disk together, as far as this process may look into them
// before ctx ends; one that is not there takes nothing.
func WeighFolders(ctx context.Context, names ...string) (sum int64) {
	for _, name := range names {
		f, err := OpenFolder(unix.AT_FDCWD, name)
		if err != nil {
			continue
		}
		_ = Weigh(f, func(bytes int64) error { // what was seen until then counts
			sum += bytes
			return ctx.Err()
		})
		_ = f.Close() // it was only read
	}
	return sum
}
