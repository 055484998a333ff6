package exports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// OwnUser stands in Roots for who asks by a token that names no user: the site itself.
const OwnUser = "@site"

// Roots are the folders of this site that the files of users' jobs may be read from and written to, by user. Those of
// node.EveryUser are everybody's.
type Roots map[string][]string

// ParseRoots reads USER=/FOLDER, where USER may be node.EveryUser or OwnUser.
func ParseRoots(list []string) (Roots, error) {
	roots := Roots{}
	for _, text := range list {
		user, root, ok := strings.Cut(text, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: write USER=/FOLDER, such as alice=/data/alice", text)
		case user != node.EveryUser && user != OwnUser && !access.ValidUser(user):
			return nil, fmt.Errorf("%q: the user must be %s, or %s for everybody, or %s for tokens that name no user",
				text, access.UserForm, node.EveryUser, OwnUser)
		case !path.IsAbs(root) || path.Clean(root) != root:
			return nil, fmt.Errorf("%q: the folder must be an absolute path without . and .. and no slash at its end", text)
		case root == "/":
			return nil, fmt.Errorf("%q: the whole machine is too much: the broker reads and writes with its own rights", text)
		}
		roots[user] = append(roots[user], root)
	}
	return roots, nil
}

// Of returns a user's roots.
func (r Roots) Of(user string) (list []string) {
	if user == "" {
		user = OwnUser
	}
	return append(append(list, r[user]...), r[node.EveryUser]...)
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Find returns the root of a user that a path is below, and the path below it, "." for the root itself. The error is
// ErrRefused with what to do.
func (r Roots) Find(user, p string) (root, rel string, err error) {
	switch {
	case len(p) > maxPath:
		return "", "", refuse("it has more than %d bytes", maxPath)
	case !utf8.ValidString(p) || strings.ContainsRune(p, 0):
		return "", "", refuse("it is no text")
	case !path.IsAbs(p):
		return "", "", refuse("%q is no absolute path", cut(p))
	}
	for name := range strings.SplitSeq(p[1:], "/") {
		if name == ".." || name == "." {
			return "", "", refuse("%q climbs: write it without . and ..", cut(p))
		}
	}
	p = path.Clean(p)
	for _, is := range r.Of(user) {
		if rest, below := strings.CutPrefix(p, is); below && len(is) >= len(root) && (rest == "" || rest[0] == '/') {
			root, rel = is, "."+rest
		}
	}
	if root == "" {
		return "", "", refuse("%q is below no folder that the site's operator has opened to %s (tes.roots)", cut(p), called(user))
	}
	return root, path.Clean(rel), nil
}

func called(user string) string {
	if user == "" {
		return "the site's own tokens"
	}
	return "user " + user
}

// OpenFile opens a regular file below a root, by no link that leads out of it.
func OpenFile(root, rel string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
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

// Tree calls f for each regular file below a folder of a root, in the order of the paths' names.
func Tree(root, rel string, f func(rel string, file *os.File) error) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return plain(err)
	}
	defer dir.Close()
	if rel != "." {
		sub, err := dir.OpenRoot(rel)
		if err != nil {
			return plain(err)
		}
		defer sub.Close()
		dir = sub
	}
	return fs.WalkDir(dir.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return plain(err)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		file, err := openIn(dir, p)
		if err != nil {
			return err
		}
		defer file.Close()
		return f(p, file)
	})
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// plain words an error of the file system.
func plain(err error) error {
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
