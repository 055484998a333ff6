package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenRights are those on files of which nobody knows yet whose they will be: of the first process of a container,
// which has the image's user, and makes them its own ([TakeOver]). Nobody else gets past the folder above.
func OpenRights() Rights { return Rights{File: 0o666, Program: 0o777, Folder: 0o777} }

// TakeOver makes the files of a folder this process's user's own, where another user has put them with [OpenRights].
// Nothing of the task runs yet.
func TakeOver(dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return own(path, e)
	})
	if err != nil {
		return fmt.Errorf("take its files over: %w", err)
	}
	return nil
}

// own makes one file this user's: who is not its owner takes a copy. A folder of another
// user stays it, and can be written by all.
func own(path string, e fs.DirEntry) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "look at", Path: path, Err: err}
	}
	mode := fs.FileMode(0o644)
	if st.Mode&0o100 != 0 {
		mode = 0o755
	}
	if int(st.Uid) == os.Geteuid() {
		return os.Chmod(path, mode)
	}
	if e.IsDir() {
		return nil
	}
	next := path + ".cloudshare-new"
	if len(filepath.Base(next)) > maxName {
		next = filepath.Join(filepath.Dir(path), ".cloudshare-new")
	}
	if err := copyFile(path, next, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// maxName is how long a name may be.
const maxName = 255

// copyFile copies one file to a place where there is none.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(mode)
	}
	return errors.Join(err, out.Close())
}
