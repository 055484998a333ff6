package outputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// takeFiles moves the streams that have files.
func (s *Store) takeFiles(items []Item) error {
	var folder *os.File
	for i := range items {
		for n, st := range items[i].Streams {
			if st.Path == "" {
				continue
			}
			var err error
			if folder == nil {
				if folder, err = s.folder.at().Open(apartFolder); err != nil {
					return err
				}
				defer folder.Close()
			}
			// it would be so forever
			if err = s.takeFile(st, folder, apartName(items[i].ID, n)); errors.Is(err, unix.EISDIR) {
				s.cfg.Aside(filepath.Join(s.cfg.Dir, apartName(items[i].ID, n)), err)
				err = s.takeFile(st, folder, apartName(items[i].ID, n))
			}
			if err != nil {
				return fmt.Errorf("keep output of %s: %w", items[i].ID, err)
			}
		}
	}
	if folder == nil {
		return nil
	}
	return folder.Sync()
}

// takeFile moves a file into the store, and has it on the disk before: whoever had it
// else (a cluster's node, for one) lets it go then. One that is not there was moved before.
func (s *Store) takeFile(st Stream, folder *os.File, name string) error {
	in, err := OpenRegular(st.Path, os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case MayPass(err):
		return err
	case err == nil:
		defer in.Close()
		if err = s.folder.disk.sync(in); err != nil {
			return fmt.Errorf("sync %s: %w", st.Path, err)
		}
	}
	// What others have put there instead of a file is moved as it is: nobody reads it,
	// and it keeps nothing else from being taken.
	moved := s.folder.disk.move(st.Path, folder, path.Base(name))
	if errors.Is(moved, unix.EXDEV) && err == nil {
		return s.copyFile(in, st.Size, name)
	}
	return moved
}

// copyFile is takeFile between file systems: the whole of it has its name, or none of
// it. The source is the caller's to remove.
func (s *Store) copyFile(in io.Reader, size int64, name string) error {
	part := name + newExt
	s.folder.remove(part)
	out, err := s.folder.at().OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, size))
	if err == nil {
		err = s.folder.disk.sync(out)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = s.folder.at().Rename(part, name)
	}
	if err != nil {
		s.folder.remove(part) // else it is a stray of the next start
	}
	return err
}
