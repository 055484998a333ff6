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
				if folder, err = s.dir().Open(apartFolder); err != nil {
					return err
				}
				defer folder.Close()
			}
			if err = s.takeFile(st, folder, apartName(items[i].ID, n)); errors.Is(err, unix.EISDIR) { // it would be so for ever
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

// takeFile moves a file into the store. One that is not there was moved before.
func (s *Store) takeFile(st Stream, folder *os.File, name string) error {
	err := unix.Renameat(unix.AT_FDCWD, st.Path, int(folder.Fd()), path.Base(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, unix.EXDEV):
		return s.copyFile(st, name)
	}
	return err
}

// copyFile is takeFile between file systems. The source is the caller's to remove.
func (s *Store) copyFile(st Stream, name string) error {
	in, err := os.OpenFile(st.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	s.removeFile(name)
	out, err := s.dir().OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, st.Size))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
