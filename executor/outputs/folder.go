package outputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
)

// folder is the store's files by their names: what is in them, the Store knows.
type folder struct {
	path  string
	root  atomic.Pointer[os.Root] // of path: a link in it leads nowhere else
	disk  *disk
	aside func(path string, why error)
	log   zerolog.Logger
}

// at returns the folder, nil before openRoot.
func (d *folder) at() *os.Root { return d.root.Load() }

// openRoot makes the folders, and opens path.
func (d *folder) openRoot() error {
	for _, dir := range []string{d.path, filepath.Join(d.path, apartFolder)} {
		switch st, err := os.Lstat(dir); {
		case err == nil && !st.IsDir():
			d.aside(dir, errors.New("no folder"))
		case err == nil && st.Mode().Perm() != 0o700:
			_ = os.Chmod(dir, 0o700) // else what needs the rights says so
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(d.path)
	if err == nil {
		d.root.Store(root)
	}
	return err
}

// readNames lists a folder below root.
func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// open opens a file of the store, never a pipe, a link or a folder.
func (d *folder) open(name string, flags int) (*os.File, error) {
	return requireRegular(d.disk.open(d.at(), name, flags|asFile))
}

// remove removes a file, or a link or a pipe that has its name; a folder stays.
func (d *folder) remove(name string) {
	if st, err := d.at().Lstat(name); err != nil || st.IsDir() {
		return
	}
	if err := d.at().Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.log.Warn().Err(err).Str("file", name).Msg("file of a removed output stays: remove it by hand")
	}
}

// sync has the names in a folder on the disk.
func (d *folder) sync(name string) error {
	f, err := d.at().Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// errNoIndex reports a file that is no index, or of another version.
var errNoIndex = errors.New("no index of kept outputs")

// readIndex reads an index file.
func (d *folder) readIndex(name string) (g segment, entries []entry, err error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return g, nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil {
		return g, nil, err
	}
	g, entries, ok := decodeIndex(b)
	if !ok {
		err = errNoIndex
	}
	return g, entries, err
}

// writeIndex writes a sealed segment's index. Without it the next start reads the segment.
func (d *folder) writeIndex(g *segment, entries []entry) {
	name := fileOf(g.number, indexExt)
	err := d.at().WriteFile(name+newExt, encodeIndex(g, entries), 0o600)
	if err == nil {
		err = d.at().Rename(name+newExt, name)
	}
	if err != nil {
		d.log.Warn().Err(err).Str("index", name).Msg("index of kept outputs not written; the next start takes longer")
		d.remove(name + newExt)
		d.remove(name) // one of an earlier life
	}
}

// apartOf returns the files of a segment's streams that have their own, but for those
// of outputs that are damaged. An error says that they are not all.
func (d *folder) apartOf(g *segment, entries []entry) (names []string, err error) {
	if g.apart == 0 {
		return nil, nil
	}
	f, err := d.open(fileOf(g.number, segmentExt), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, e := range entries {
		h, err := readHead(f, g.salt, int64(e.off))
		if MayPass(err) {
			return names, err
		}
		for n, apart := range h.apart {
			if err == nil && apart {
				names = append(names, apartName(h.id, n))
			}
		}
	}
	return names, nil
}

// openApart opens a stream that has a file of its own.
func (d *folder) openApart(id executor.ID, stream int) (io.ReadSeekCloser, error) {
	f, err := d.open(apartName(id, stream), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: its file was removed", executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, readError(err)
	}
	return f, nil
}
