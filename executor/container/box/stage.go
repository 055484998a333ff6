package box

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// takeFiles makes the files that the handler has put into the attempt's folders this user's
// own. Nothing of the task runs yet.
func (b *boxed) takeFiles() error {
	for _, dir := range b.order.Staged {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			return own(path, e)
		})
		if err != nil {
			return &watchdog.Trouble{Cause: fmt.Errorf("take its files over: %w", err)}
		}
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

// maxOpened bounds what openUp looks at.
const maxOpened = 1 << 20

// openUp lets the handler, which may be another user, read what the task has left, and
// remove it: nobody else gets past the folder above. What cannot be opened up it hears of
// when it reads.
func openUp(dir string) {
	_ = os.Chmod(dir, 0o777)
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; seen > maxOpened {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // the rest is opened up
		}
		switch {
		case e.IsDir(): // called before it is read
			_ = os.Chmod(path, 0o777)
		case e.Type().IsRegular():
			if st, err := os.Lstat(path); err == nil && st.Mode()&0o444 != 0o444 {
				_ = os.Chmod(path, st.Mode()&0o777|0o444)
			}
		}
		return nil
	})
}
