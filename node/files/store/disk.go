package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// point names a change of the files, at which tests fail the disk or end the process.
type point string

// The fail points: before each of these, what was done so far is all that a crash leaves.
const (
	pointMkdir    point = "mkdir"       // of an owner's folder
	pointCreate   point = "create"      // of a file of any kind
	pointAllocate point = "allocate"    // of the room of a partial blob
	pointWrite    point = "write"       // of content or of a piece
	pointRow      point = "row"         // of the row that says that a piece is there
	pointSync     point = "sync"        // of a file
	pointSettle   point = "settle"      // of rows whose pieces are synced
	pointRename   point = "rename"      // of a whole blob into its place
	pointFolder   point = "sync folder" // behind a rename
	pointRemove   point = "remove"      // of a file
	pointBoot     point = "boot"        // of the file that says when the cache was written
	pointLog      point = "log"         // of small blobs into the log
	pointSyncAll  point = "sync all"    // before the log or what Close leaves is let go
	pointReset    point = "reset"       // of the log
)

// disk is the store's folder and what is done to it. Names are below the folder; a link leads nowhere out of it.
type disk struct {
	root   *os.Root
	folder *os.File // the same one, from which names are resolved in one step
	// fault, if set, is called at each fail point, and may return an error in the place of what was to be done.
	fault func(point) error
	// noSyncAll leaves out what syncAll does.
	noSyncAll bool
}

// asFile is the flag with which a pipe is not waited for.
const asFile = unix.O_NONBLOCK

func (d *disk) at(p point) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(p)
}

// create makes a file that was not there, in a folder that it makes if need be.
func (d *disk) create(name string) (*os.File, error) {
	f, err := d.tryCreate(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err = d.mkdir(path.Dir(name)); err != nil {
		return nil, err
	}
	return d.tryCreate(name)
}

func (d *disk) tryCreate(name string) (*os.File, error) {
	if err := d.at(pointCreate); err != nil {
		return nil, err
	}
	return d.openBelow(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // it is new, so no pipe
}

// mkdir makes a folder and those above it, durably but in the cache; one that is there may be just as new.
func (d *disk) mkdir(name string) error {
	if err := d.at(pointMkdir); err != nil {
		return err
	}
	above := path.Dir(name)
	err := d.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.mkdir(above); err == nil {
			err = d.root.Mkdir(name, 0o700)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !durable(name) {
		return nil
	}
	return d.syncFolder(above)
}

// open opens a file of the store: no pipe, no folder.
func (d *disk) open(name string, flags int) (*os.File, error) {
	f, err := d.openBelow(name, flags|asFile, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is no regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// allocate gives a file its size, and its blocks where the file system can: a full disk is known at the beginning.
func (d *disk) allocate(f *os.File, size int64) error {
	if err := d.at(pointAllocate); err != nil || size == 0 {
		return err
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.Truncate(size)
	}
	return err
}

func (d *disk) writeAt(p point, f *os.File, b []byte, off int64) error {
	if err := d.at(p); err != nil {
		return err
	}
	_, err := f.WriteAt(b, off)
	return err
}

func (d *disk) sync(f *os.File) error {
	if err := d.at(pointSync); err != nil {
		return err
	}
	return f.Sync()
}

// rename gives a file another name, over one that is there.
func (d *disk) rename(from, to string) error {
	if err := d.at(pointRename); err != nil {
		return err
	}
	err := d.renameBelow(from, to)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = d.mkdir(path.Dir(to)); err != nil {
		return err
	}
	return d.renameBelow(from, to)
}

// syncFolder has the disk know the names in a folder.
func (d *disk) syncFolder(name string) error {
	if err := d.at(pointFolder); err != nil {
		return err
	}
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// remove removes a file; one that is not there is no error.
func (d *disk) remove(name string) error {
	err := d.at(pointRemove)
	if err == nil {
		err = d.removeBelow(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// touch notes when a file was used last; it may be lost.
func (d *disk) touch(name string, used time.Time) { _ = d.touchBelow(name, used) }

func (d *disk) close() error { return errors.Join(d.folder.Close(), d.root.Close()) }
