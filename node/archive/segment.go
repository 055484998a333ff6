package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// The first record of a segment is a head, and the second one a copy of it, for
// the case that the first is damaged. Segments are only appended to, and deleted
// whole, so reading needs no lock.

// segment is what is known of a file.
type segment struct {
	number  uint64
	created time.Time
	begin   int64 // size of the head and its copy
	size    int64 // bytes that are read; of the last one, to the end of its last whole batch
}

// lockDir takes the folder for this process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock archive: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock archive %s: %w", dir, ErrInUse), f.Close())
	}
	return f, nil
}

// reopen goes on with the last segment.
func (a *Archive) reopen() error {
	s := &a.segments[len(a.segments)-1]
	f, err := os.OpenFile(a.path(s.number), os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	if err := f.Truncate(s.size); err != nil {
		return errors.Join(fmt.Errorf("cut a torn record off: %w", err), f.Close())
	}
	if _, err := f.Seek(s.size, io.SeekStart); err != nil {
		return errors.Join(fmt.Errorf("open archive: %w", err), f.Close())
	}
	a.file = f
	return nil
}

// beginSegment starts a new segment. The last one is synced before: the new head says
// that everything before its place is on the disk. REQUIRES: a.mu held, or nobody
// else knows a.
func (a *Archive) beginSegment() error {
	if a.file != nil {
		if err := errors.Join(a.cut(), a.sync()); err != nil {
			return err
		}
	}
	h := a.headNow()
	s, f, err := a.createSegment(&h)
	if err != nil {
		return fmt.Errorf("begin a segment of the archive: %w", err)
	}
	if a.file != nil {
		err = a.file.Close()
	}
	a.file, a.dirty, a.saved = f, true, a.place
	a.segments = append(a.segments, s)
	return err
}

// createSegment makes the file after the last one. REQUIRES: as begin.
func (a *Archive) createSegment(h *head) (s segment, f *os.File, err error) {
	s = segment{number: a.newest + 1, created: h.created}
	f, err = os.OpenFile(a.path(s.number), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return s, nil, err
	}
	frames := appendHeads(nil, h)
	if _, err := f.Write(frames); err != nil {
		return s, nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	a.newest = s.number
	s.begin = int64(len(frames))
	s.size = s.begin
	return s, f, nil
}

// appendHeads adds the frames of a head and of its copy.
func appendHeads(b []byte, h *head) []byte {
	record := encodeHead(h)
	return appendFrame(appendFrame(b, record), record)
}

// write appends frames; what could be written only in part is cut off again.
// REQUIRES: a.mu held.
func (a *Archive) write(b []byte) error {
	if a.file == nil {
		if err := a.beginSegment(); err != nil {
			return err
		}
	}
	if err := a.cut(); err != nil {
		return err
	}
	s := &a.segments[len(a.segments)-1]
	if _, err := a.file.WriteAt(b, s.size); err != nil {
		cut := a.file.Truncate(s.size)
		a.uncut = cut != nil
		return errors.Join(fmt.Errorf("write archive: %w", err), cut)
	}
	s.size += int64(len(b))
	a.dirty = true
	return nil
}

// cut takes off what a failed write left behind the last segment's size: a start, or
// a report, could find in it what is written again later. REQUIRES: a.mu held.
func (a *Archive) cut() error {
	if !a.uncut {
		return nil
	}
	if err := a.file.Truncate(a.segments[len(a.segments)-1].size); err != nil {
		return fmt.Errorf("write archive: cut a torn record off: %w", err)
	}
	a.uncut = false
	return nil
}

// expire deletes the oldest segments that are too old or too many. REQUIRES:
// a.mu held.
func (a *Archive) expire(now time.Time) error {
	var sum int64
	for _, s := range a.segments {
		sum += s.size
	}
	// What a segment holds ended before the next one began.
	for len(a.segments) > 1 && (sum > a.cfg.MaxBytes || now.Sub(a.segments[1].created) > a.cfg.Keep) {
		if err := os.Remove(a.path(a.segments[0].number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("delete an old segment of the archive: %w", err)
		}
		sum -= a.segments[0].size
		a.segments = slices.Delete(a.segments, 0, 1)
	}
	return nil
}
