package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"

	"github.com/cloudshare/cloudshare/node/walfile"
)

// restore has the blobs that were in the log at a crash be in files of their own, and empties it. Unless somebody has
// closed the store all is synced: a kill between a rename and the sync of its folder leaves a name of which the disk
// may not know, and what is in the index is durable.
func (s *Store) restore() error {
	list, err := s.log.open()
	if errors.Is(err, walfile.ErrDamaged) && !errors.Is(err, errLog) {
		err = errors.Join(errLog, err)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		if err = s.restoreBlob(w); err != nil {
			return wrap("restore", w.key, err)
		}
	}
	if _, err = s.disk.root.Stat(bootFile); errors.Is(err, fs.ErrNotExist) && len(list) == 0 {
		return nil
	}
	if err = s.disk.syncAll(); err != nil {
		return err
	}
	return s.log.reset()
}

// restoreBlob writes a file again, unless it is whole: its own was not synced.
func (s *Store) restoreBlob(w *logged) error {
	whole := fileOf(w.key)
	if s.has(whole, w.content) {
		return nil
	}
	name := newFolder + "/" + strconv.FormatUint(s.counter.Add(1), 10)
	f, err := s.disk.create(name)
	if err != nil {
		return err
	}
	if err = errors.Join(s.disk.writeAt(pointWrite, f, w.content, 0), f.Close()); err == nil {
		err = s.disk.rename(name, whole)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(name))
	}
	s.disk.touch(whole, w.put)
	return nil
}

// has reports whether a file has this content.
func (s *Store) has(name string, content []byte) bool {
	f, err := s.disk.open(name, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	return err == nil && bytes.Equal(got, content)
}
