package exports

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/cloudshare/cloudshare/node/files"
)

// maxVisited bounds the names that are read below a folder, those of folders, links and devices as well; maxNested the
// folders in one another.
const (
	maxVisited = 2 * files.MaxEntries
	maxNested  = 256
	readNames  = 1024 // names of a folder at a time
)

// openFolder opens a folder below a root, by no link that leads out of it.
func openFolder(root Root, rel string) (*os.Root, error) {
	dir, err := root.open()
	if err != nil || rel == "." {
		return dir, plain(err)
	}
	defer dir.Close()
	sub, err := dir.OpenRoot(rel)
	if err != nil { // of a file its words name a descriptor of this process
		if st, serr := dir.Stat(rel); serr == nil && !st.IsDir() {
			return nil, refuse("%q is no directory: give its type as FILE", cut(rel))
		}
	}
	return sub, plain(err)
}

// CheckFolder returns why a folder below a root cannot be read, or nil.
func CheckFolder(root Root, rel string) error {
	dir, err := openFolder(root, rel)
	if err != nil {
		return err
	}
	return dir.Close()
}

// Tree calls f for each regular file below a folder of a root, in the order of files.ComparePaths. A folder with too
// many names is refused.
func Tree(root Root, rel string, f func(rel string, file *os.File) error) error {
	dir, err := openFolder(root, rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	w := walk{dir: dir, f: f}
	return w.folder(".", 0)
}

// walk is one through a tree.
type walk struct {
	dir     *os.Root
	f       func(rel string, file *os.File) error
	visited int // names
}

// folder walks through what is in a folder, and below.
func (w *walk) folder(at string, depth int) error {
	if depth > maxNested {
		return refuse("%q: more than %d folders are in one another", cut(at), maxNested)
	}
	list, err := w.read(at)
	if err != nil {
		return err
	}
	for _, e := range list {
		switch p := path.Join(at, e.Name()); {
		case e.IsDir():
			err = w.folder(p, depth+1)
		case e.Type().IsRegular():
			err = w.file(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns what is in a folder, sorted: a name before those that it begins, as paths are compared.
func (w *walk) read(at string) (list []fs.DirEntry, err error) {
	// A fifo may have taken the folder's place since its name was read: it is not waited for.
	d, err := w.dir.OpenFile(at, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer d.Close()
	for {
		some, err := d.ReadDir(readNames)
		list = append(list, some...)
		if w.visited += len(some); w.visited > maxVisited {
			return nil, refuse("it has more than %d names: make an archive of them", maxVisited)
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return list, nil
		case err != nil:
			return nil, plain(err)
		}
	}
}

func (w *walk) file(at string) error {
	file, err := openIn(w.dir, at)
	if err != nil {
		return err
	}
	defer file.Close()
	return w.f(at, file)
}
