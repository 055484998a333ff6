package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Resolve finds the folders to which Share leads. A share is refused that is, holds or
// lies in what is hidden, by whatever path.
func (p Plan) Resolve() (Plan, error) {
	p.Resolved = nil
	hidden := places(p.Hide)
	for _, dir := range p.Share {
		folder, err := filepath.EvalSymlinks(dir)
		if err == nil {
			err = mustBeFolder(folder)
		}
		if err != nil {
			return p, fmt.Errorf("share %s: not a folder here: %w", dir, err)
		}
		for _, secret := range hidden {
			if holds(folder, secret) || holds(secret, folder) {
				return p, fmt.Errorf("share %s: it leads to %s, which holds, or lies in, %s, the broker's own: share another folder", dir, folder, secret)
			}
		}
		p.Resolved = append(p.Resolved, folder)
	}
	return p, nil
}

func mustBeFolder(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return unix.ENOTDIR
	case path == "/":
		return errors.New("it is the root of all folders")
	}
	return nil
}

// holds reports whether path is dir or below it; a folder may be mounted at several paths.
func holds(dir, path string) bool {
	if within(path, dir) {
		return true
	}
	st, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for ; path != "/"; path = filepath.Dir(path) {
		if it, err := os.Stat(path); err == nil && os.SameFile(st, it) {
			return true
		}
	}
	return false
}

// openShare opens a folder that Resolve has found. A link in its path is one that was made
// since, by a task perhaps: shares are writable.
func openShare(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ELOOP) {
		err = errors.New("a link has taken the place of a folder since the broker started")
	}
	return fd, err
}
