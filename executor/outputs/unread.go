package outputs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cloudshare/cloudshare/executor"
)

// MayPass reports whether an error is of the machine or the disk at this moment (no
// descriptors, no memory, a read that failed), and not of what stands there.
func MayPass(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && !slices.Contains(lasting, number)
}

// lasting are the errors that tell what stands in the place of a file.
var lasting = []syscall.Errno{syscall.ENOENT, syscall.ELOOP, syscall.ENXIO, syscall.ENOTDIR, syscall.EISDIR}

// readError words why what is kept cannot be read: it is gone, damaged, or there and
// not to be had now.
func readError(err error) error {
	switch {
	case err == nil, errors.Is(err, executor.ErrUnknownAttempt), errors.Is(err, executor.ErrDamaged):
		return err
	case errors.Is(err, os.ErrNotExist): // removed just now
		return executor.ErrUnknownAttempt
	case MayPass(err), errors.Is(err, os.ErrClosed): // the store ends, or begins again in a new folder
		return fmt.Errorf("%w: %w", executor.ErrUnreadable, err)
	}
	return fmt.Errorf("%w: %w", executor.ErrDamaged, err)
}

// passOver is called with a segment that cannot be entered: what is damaged is put
// aside, what may be read later stays. REQUIRES: s.writing held, or nobody else yet.
func (s *Store) passOver(number uint32, err error) {
	if !MayPass(err) {
		s.cfg.Aside(filepath.Join(s.cfg.Dir, fileOf(number, segmentExt)), err)
		s.folder.remove(fileOf(number, indexExt))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadBy == nil {
		s.cfg.Logger.Warn().Err(err).Msg("kept outputs cannot be read now; tried again: see to the disk, or to the limit of open files")
	}
	s.unread, s.unreadBy = append(s.unread, number), err
}

// readAgain enters the segments that could not be read. REQUIRES: s.writing held.
func (s *Store) readAgain() {
	s.mu.Lock()
	list := s.unread
	s.unread = nil
	s.mu.Unlock()
	if len(list) == 0 {
		return
	}
	for _, number := range list {
		if err := s.loadSegment(number, false); err != nil {
			s.passOver(number, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unread) == 0 {
		s.unreadBy = nil
		s.cfg.Logger.Info().Int("segments", len(list)).Msg("all kept outputs can be read again")
	}
}

// unknown returns the answer about an attempt that is not in the index. REQUIRES: s.mu held.
func (s *Store) unknown() error {
	if s.unreadBy != nil {
		return fmt.Errorf("%w: %w", executor.ErrUnreadable, s.unreadBy)
	}
	return executor.ErrUnknownAttempt
}
