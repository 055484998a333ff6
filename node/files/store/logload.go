package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cloudshare/cloudshare/node/walfile"
)

// restore has the blobs that were in the log at a crash be in files of their own, and empties it. Unless somebody has
// closed the store all is synced beside what follows: a kill between a rename and the sync of its folder leaves a name
// of which the disk may not know, and who puts what is there hears that it is durable.
func (s *Store) restore() error {
	list, err := s.log.open()
	if errors.Is(err, walfile.ErrDamaged) {
		err = fmt.Errorf("%w: move it away, and blobs that were put shortly before a crash of the machine may be missing", err)
	}
	if err != nil {
		return err
	}
	full := false
	for _, w := range list {
		err = s.restoreBlob(w)
		if isDiskFull(err) && s.has(fileOf(w.key), w.content) {
			full, err = true, nil // it stays in the log
		}
		if err != nil {
			return wrap("restore", w.key, err)
		}
	}
	_, err = s.disk.root.Stat(bootFile)
	switch {
	case full:
		s.log.state = logFailed
		close(s.log.begun)
	case errors.Is(err, fs.ErrNotExist) && len(list) == 0:
		close(s.log.begun)
	default:
		s.log.begin()
	}
	return nil
}

// restoreBlob writes a file again, also one that is there: of what a failed sync has left in memory the system does not
// say that the disk lacks it.
func (s *Store) restoreBlob(w *logged) error {
	whole := fileOf(w.key)
	used := w.put
	if st, err := s.disk.root.Lstat(whole); err == nil && st.Size() == int64(len(w.content)) {
		used = st.ModTime()
	}
	name, f, err := s.createNew()
	if err != nil {
		return err
	}
	if err = errors.Join(s.disk.writeAt(pointWrite, f, w.content, 0), f.Close()); err == nil {
		err = s.disk.rename(name, whole)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(name))
	}
	s.disk.touch(whole, used)
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
