package exports

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// OwnUser stands in Roots for who asks by a token that names no user: the site itself.
const OwnUser = "@site"

// Root is a folder of this site that files of a user's jobs may be read from.
type Root struct {
	Name     string // as the operator has written it, and users do
	Folder   string // the same without links in it, as it was when the broker started
	ReadOnly bool   // nothing is written there
}

// Roots are by user. Those of node.EveryUser are everybody's, and for reading.
type Roots map[string][]Root

// readOnly stands behind a folder in which nothing is written.
const readOnly = ":ro"

// ParseRoots reads USER=/FOLDER or USER=/FOLDER:ro, where USER may be node.EveryUser or OwnUser. It follows the links
// on the way to a folder, once.
func ParseRoots(list []string) (Roots, error) {
	roots := Roots{}
	for _, text := range list {
		user, name, ok := strings.Cut(text, "=")
		name, ro := strings.CutSuffix(name, readOnly)
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: write USER=/FOLDER, such as alice=/data/alice", text)
		case user != node.EveryUser && user != OwnUser && !access.ValidUser(user):
			return nil, fmt.Errorf("%q: the user must be %s, or %s for everybody, or %s for tokens that name no user",
				text, access.UserForm, node.EveryUser, OwnUser)
		case !path.IsAbs(name) || path.Clean(name) != name:
			return nil, fmt.Errorf("%q: the folder must be an absolute path without . and .. and no slash at its end", text)
		}
		root := Root{Name: name, Folder: Resolve(name), ReadOnly: ro || user == node.EveryUser}
		if root.Folder == "/" {
			return nil, fmt.Errorf("%q: the whole machine is too much: the broker reads and writes with its own rights", text)
		}
		roots[user] = append(roots[user], root)
	}
	return roots, nil
}

// Resolve follows the links of an absolute path as far as it exists. What does not exist stays as it is written.
func Resolve(name string) string {
	for at, rest := name, ""; ; at, rest = path.Dir(at), path.Join(path.Base(at), rest) {
		if target, err := filepath.EvalSymlinks(at); err == nil {
			return path.Join(target, rest)
		}
		if at == "/" {
			return name
		}
	}
}

// Apart returns an error if a root has one of these files or folders in it, or is in one.
func (r Roots) Apart(others []string) error {
	for _, user := range slices.Sorted(maps.Keys(r)) {
		for _, root := range r[user] {
			for _, other := range others {
				it := Resolve(other)
				if within(root.Folder, it) || within(it, root.Folder) {
					return fmt.Errorf("%s=%s: %s is the broker's own, and tasks' users would read it: give a folder that has none "+
						"of its files and is in none of its folders", user, root.Name, other)
				}
			}
		}
	}
	return nil
}

// within reports whether a path is a folder or below it.
func within(p, folder string) bool {
	rest, below := strings.CutPrefix(p, folder)
	return below && (rest == "" || rest[0] == '/' || folder == "/")
}

// Of returns a user's roots.
func (r Roots) Of(user string) (list []Root) {
	if user == "" {
		user = OwnUser
	}
	return append(append(list, r[user]...), r[node.EveryUser]...)
}

// Writable opens one of a user's roots by its name, if it is one still that may be written to.
func (r Roots) Writable(user, name string) (*os.Root, error) {
	for _, root := range r.Of(user) {
		if root.Name == name && !root.ReadOnly {
			return root.open()
		}
	}
	return nil, refuse("%q is no folder any more that the site's operator has opened to %s for writing (tes.roots)",
		cut(name), called(user))
}

// open opens the folder. A link on the way to it is one that was made since: it may lead anywhere.
func (r Root) open() (*os.Root, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, r.Folder, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, refuse("%q: a link has taken the place of a folder since the broker started", cut(r.Name))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: r.Name, Err: err}
	}
	defer unix.Close(fd)
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Find returns the root of a user that a path is below, and the path below it, "." for the root itself. The error is
// ErrRefused with what to do.
func (r Roots) Find(user, p string) (root Root, rel string, err error) {
	switch {
	case len(p) > maxPath:
		return Root{}, "", refuse("it has more than %d bytes", maxPath)
	case !utf8.ValidString(p) || strings.ContainsRune(p, 0):
		return Root{}, "", refuse("it is no text")
	case !path.IsAbs(p):
		return Root{}, "", refuse("%q is no absolute path", cut(p))
	}
	for name := range strings.SplitSeq(p[1:], "/") {
		if name == ".." || name == "." {
			return Root{}, "", refuse("%q climbs: write it without . and ..", cut(p))
		}
	}
	p = path.Clean(p)
	for _, is := range r.Of(user) {
		if within(p, is.Name) && is.before(root) {
			root, rel = is, "."+p[len(is.Name):]
		}
	}
	if root.Name == "" {
		return Root{}, "", refuse("%q is below no folder that the site's operator has opened to %s (tes.roots)", cut(p), called(user))
	}
	return root, path.Clean(rel), nil
}

// before reports whether a root is to be taken rather than another one that a path is below, too: the one that says
// more, and of the same folder the one that may be written to.
func (r Root) before(other Root) bool {
	return len(r.Name) > len(other.Name) || len(r.Name) == len(other.Name) && !r.ReadOnly
}

func called(user string) string {
	if user == "" {
		return "the site's own tokens"
	}
	return "user " + user
}

// OpenFile opens a regular file below a root, by no link that leads out of it.
func OpenFile(root Root, rel string) (*os.File, error) {
	dir, err := root.open()
	if err != nil {
		return nil, plain(err)
	}
	defer dir.Close()
	return openIn(dir, rel)
}

// openIn opens a regular file. A fifo is not waited for.
func openIn(dir *os.Root, rel string) (*os.File, error) {
	f, err := dir.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case st.IsDir():
		err = refuse("%q is a directory: give its type as DIRECTORY", cut(rel))
	case !st.Mode().IsRegular():
		err = refuse("%q is no regular file", cut(rel))
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// plain words an error of the file system.
func plain(err error) error {
	if errors.Is(err, ErrRefused) {
		return err
	}
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		return refuse("%q: %v", cut(at.Path), at.Err)
	}
	return refuse("%v", err)
}

func cut(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
