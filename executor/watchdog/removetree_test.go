package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nest makes folders in folders, each named d, with a file in the lowest; no path may
// be as long as theirs.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; i < depth && err == nil; i++ {
		up := at
		if err = unix.Mkdirat(up, "d", 0o700); err == nil {
			at, err = unix.Openat(up, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(up)
	}
	if err == nil {
		var fd int
		if fd, err = unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
			unix.Close(fd)
		}
		unix.Close(at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fewFiles lets this process open only so many files until the test ends.
func fewFiles(t *testing.T, most uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	now := was
	now.Cur = most
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	})
}

// TestRemoveTree: folders deeper than there are descriptors, such as deny it to
// their owner, many files, links and pipes.
func TestRemoveTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(filepath.Join(outside, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(dir string) error{
		"nothing": func(dir string) error { return os.Remove(dir) },
		"empty":   func(string) error { return nil },
		"a file":  func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0)) },
		"a link":  func(dir string) error { return errors.Join(os.Remove(dir), os.Symlink(outside, dir)) },
		"links":   func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "link")) },
		"a pipe":  func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "fifo"), 0) },
		"closed folders": func(dir string) error {
			err := os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700)
			for _, d := range []string{"a/b/c", "a/b", "a", ""} {
				err = errors.Join(err, os.Chmod(filepath.Join(dir, d), 0))
			}
			return err
		},
		"many": func(dir string) (err error) {
			for i := range batch + 10 {
				path := filepath.Join(dir, fmt.Sprintf(".moved-%d", i))
				err = errors.Join(err, os.MkdirAll(filepath.Join(path, "x", "y"), 0o700),
					os.WriteFile(filepath.Join(path, "f"), nil, 0))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			if err := errors.Join(os.Mkdir(dir, 0o700), make(dir)); err != nil {
				t.Fatal(err)
			}
			if err := RemoveTree(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestRemoveDeepTree: a task that nests folders deeper than a process may open files
// must not leave them forever; os.RemoveAll gives up there.
func TestRemoveDeepTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	for _, d := range []string{"", "one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	nest(t, filepath.Join(dir, "one"), 5000)
	nest(t, filepath.Join(dir, "two"), 100)
	fewFiles(t, 64)
	if err := RemoveTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestRemoveTreeSaysWhatStays: all goes but a mount point, which the error names.
func TestRemoveTreeSaysWhatStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	mount := filepath.Join(dir, "a", "mount")
	if err := errors.Join(os.MkdirAll(mount, 0o700), os.WriteFile(filepath.Join(dir, "a", "file"), nil, 0)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", mount, "tmpfs", 0, ""); err != nil {
		t.Logf("nothing can be mounted here: %v", err)
		return
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, 0) })
	err := RemoveTree(dir)
	if err == nil || !strings.Contains(err.Error(), "mount") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "a", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file beside it stays: %v", err)
	}
}
