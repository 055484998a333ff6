package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a file, or a folder and all that is in it, as os.RemoveAll does,
// with two descriptors however deep folders are nested and however long that makes
// their paths: the folders of a folder are first moved up, into the root of the tree.
// Folders that deny it to their owner are opened up; links are not followed. It does
// as much as it can, and its error names what has stayed, and why.
func RemoveTree(path string) error {
	first := unix.Unlink(path)
	if first == nil || errors.Is(first, unix.ENOENT) {
		return nil
	}
	t, err := openTree(path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR):
		return &os.PathError{Op: "remove", Path: path, Err: first}
	case err != nil:
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	defer t.root.Close()
	t.clear()
	switch err = unix.Rmdir(path); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case t.failed != nil:
		return t.failed
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

// tree is a folder that is being emptied.
type tree struct {
	root   *os.File
	prefix string // of the names of folders moved up
	moved  uint64 // how many were
	failed error  // the last thing that stayed
}

func openTree(path string) (*tree, error) {
	fd, err := openFolder(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	return &tree{root: os.NewFile(uintptr(fd), path), prefix: ".moved-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-"}, nil
}

// openFolder opens a folder for reading and changing, whatever its mode is.
func openFolder(at int, name string) (int, error) {
	const how = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	pin, err := unix.Openat(at, name, how|unix.O_PATH, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pin)
	var st unix.Stat_t
	self := "/proc/self/fd/" + strconv.Itoa(pin) // of what was opened, not of what has its name by now
	if err = unix.Fstat(pin, &st); err == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmodat(unix.AT_FDCWD, self, 0o700, 0) // else the open says why it cannot be
	}
	return unix.Openat(pin, ".", unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_RDONLY, 0)
}

// nameTries is how many names are tried for a folder that is moved up: nobody else makes
// such, but by chance or on purpose.
const nameTries = 16

// clear empties the root, as far as it can be: it goes over it again as long as that
// takes something away.
func (t *tree) clear() {
	for progress := true; progress; {
		progress, t.failed = false, nil
		if _, err := t.root.Seek(0, 0); err != nil {
			t.failed = err
			return
		}
		for name, unread := range Names(t.root) {
			if unread != nil {
				break
			}
			progress = t.remove(name) || progress
		}
	}
}

// remove takes one entry of the root away, or what is in it; it reports whether
// anything went.
func (t *tree) remove(name string) (progress bool) {
	at := int(t.root.Fd())
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return err == nil
	}
	if unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil {
		return true
	}
	fd, oerr := openFolder(at, name)
	if oerr != nil {
		if errors.Is(oerr, unix.ENOTDIR) {
			oerr = err
		}
		t.stays(name, oerr)
		return false
	}
	progress = t.unpack(os.NewFile(uintptr(fd), name))
	if err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		if !errors.Is(err, unix.ENOTEMPTY) || t.failed == nil {
			t.stays(name, err)
		}
		return progress
	}
	return true
}

// unpack removes the files of a folder of the root, and moves its folders up. It
// closes the folder.
func (t *tree) unpack(dir *os.File) (progress bool) {
	defer dir.Close()
	for again := true; again; progress = progress || again {
		again = false
		if _, err := dir.Seek(0, 0); err != nil {
			return progress
		}
		for name, unread := range Names(dir) {
			if unread != nil {
				break
			}
			again = t.removeOrMoveUp(dir, name) || again
		}
	}
	return progress
}

// removeOrMoveUp removes an entry of such a folder, or moves it up.
func (t *tree) removeOrMoveUp(dir *os.File, name string) bool {
	from := int(dir.Fd())
	err := unix.Unlinkat(from, name, 0)
	if err == nil || unix.Unlinkat(from, name, unix.AT_REMOVEDIR) == nil {
		return true
	}
	// A folder is moved only by who may write in it.
	fd, oerr := openFolder(from, name)
	if oerr != nil {
		t.stays(filepath.Join(dir.Name(), name), err)
		return false
	}
	unix.Close(fd)
	for range nameTries {
		t.moved++
		up := t.prefix + strconv.FormatUint(t.moved, 36)
		err = unix.Renameat2(from, name, int(t.root.Fd()), up, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			break
		}
	}
	if err != nil {
		t.stays(filepath.Join(dir.Name(), name), err)
		return false
	}
	return true
}

// stays notes what cannot be removed.
func (t *tree) stays(name string, err error) {
	t.failed = fmt.Errorf("%s in %s cannot be removed: %w", name, t.root.Name(), err)
}
