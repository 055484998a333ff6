package staging

import (
	"context"
	"errors"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// maxSeen bounds the names that one collection looks at: a task may have filled folders
// with more than it may leave.
const maxSeen = 1 << 20

// lister goes through the folders that may hold what is wanted, with two descriptors
// however deep they are.
type lister struct {
	*collector
	todo []string // folders to be gone through, by their paths
	seen int
}

// list finds what is wanted.
func (c *collector) list() error {
	l := &lister{collector: c, todo: []string{""}}
	l.meetFolder("")
	for len(l.todo) > 0 {
		path := l.todo[len(l.todo)-1]
		l.todo = l.todo[:len(l.todo)-1]
		if err := l.folder(path); err != nil {
			return err
		}
	}
	return nil
}

// folder goes through one folder.
func (l *lister) folder(path string) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	dir, err := openFolder(int(l.root.Fd()), pathOrDot(path))
	if err != nil {
		return unreadable(path, err)
	}
	defer dir.Close()
	for name, unread := range watchdog.Names(dir) {
		if unread != nil {
			return unreadable(path, unread)
		}
		if l.seen++; l.seen > maxSeen {
			return &executor.OutputBoundError{What: "names in its folders", Most: maxSeen}
		}
		if err = l.entry(dir, name, join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func pathOrDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// entry takes one name of a folder: a file that is wanted, or a folder that may hold such.
func (l *lister) entry(dir *os.File, name, path string) error {
	matches, holds := l.matches(path)
	if !matches && !holds {
		return nil
	}
	if why := untold(path); why != "" {
		l.skip(path, why)
		return nil
	}
	pinned, st, err := pin(int(dir.Fd()), name)
	switch {
	case errors.Is(err, unix.EXDEV):
		l.skip(path, "in another file system, which was mounted there")
		return nil
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return unreadable(path, err)
	}
	unix.Close(pinned)
	return l.sort(path, &st, matches, holds)
}

// sort takes what is at a path as what it is.
func (l *lister) sort(path string, st *unix.Stat_t, matches, holds bool) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if holds {
			l.meetFolder(path)
			l.todo = append(l.todo, path)
		} else {
			l.skip(path, "a folder: name it with a slash at its end")
		}
		return nil
	case unix.S_IFREG:
		if !matches {
			return nil
		}
		if l.owner != AnyOwner && int(st.Uid) != l.owner {
			l.skip(path, "another user's")
			return nil
		}
		l.meet(path)
		return l.add(path, st)
	}
	if matches || holds && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		l.skip(path, kind(st.Mode))
	}
	return nil
}

// matches reports whether a path is one that is wanted, and whether it may be a folder that
// holds such.
func (l *lister) matches(path string) (matches, holds bool) {
	for _, w := range l.globs {
		matches = matches || w.Match(path)
		holds = holds || w.MayHold(path)
	}
	return matches, holds
}

// meet notes the globs that have their file.
func (l *lister) meet(path string) {
	for _, w := range l.globs {
		w.met = w.met || w.Match(path)
	}
}

// meetFolder notes the globs that have their folder: it may be empty.
func (l *lister) meetFolder(path string) {
	for _, w := range l.globs {
		w.met = w.met || w.MatchFolder(path)
	}
}

// untold says why a path cannot travel, "" = it can. Names of files are any bytes, and
// manifests are text.
func untold(path string) string {
	switch {
	case len(path) > executor.MaxPath:
		return "a path of more than 1024 bytes"
	case !utf8.ValidString(path):
		return "a name that is not UTF-8"
	case executor.CheckPath(path, false) != nil:
		return "a name with a control character"
	}
	return ""
}
