package outputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// findSegment returns where a segment is, or belongs. REQUIRES: s.mu held.
func (s *Store) findSegment(number uint32) (int, bool) {
	return slices.BinarySearchFunc(s.segments, number, func(g *segment, n uint32) int {
		return cmp.Compare(g.number, n)
	})
}

// lookup returns where an output is.
func (s *Store) lookup(key uint64) (number uint32, off int64, own salt, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	place, ok := s.index[key]
	if !ok {
		return 0, 0, own, s.unknown()
	}
	number, off = uint32(place>>32), int64(uint32(place))
	i, ok := s.findSegment(number)
	if !ok {
		return 0, 0, own, executor.ErrUnknownAttempt
	}
	return number, off, s.segments[i].salt, nil
}

// openAt opens the segment that has an attempt's output, and reads its head.
func (s *Store) openAt(key uint64) (f *os.File, h head, off int64, err error) {
	number, off, own, err := s.lookup(key)
	if err != nil {
		return nil, h, 0, err
	}
	f, err = s.folder.open(fileOf(number, segmentExt), os.O_RDONLY)
	if err != nil {
		return nil, h, 0, readError(err)
	}
	if h, err = readHead(f, own, off); err != nil {
		return nil, h, 0, errors.Join(readError(err), f.Close())
	}
	return f, h, off, nil
}

// Find returns the full id of an attempt whose output is kept: executor.ErrUnknownAttempt
// if it is not, executor.ErrUnreadable, executor.ErrDamaged.
func (s *Store) Find(job string, task, attempt uint32) (executor.ID, error) {
	f, h, _, err := s.openAt(keyOf(job, task, attempt))
	if err != nil {
		return executor.ID{}, err
	}
	_ = f.Close()
	if h.id.Job != job || h.id.Task != task || h.id.Attempt != attempt {
		return executor.ID{}, executor.ErrUnknownAttempt
	}
	return h.id, nil
}

// FindNewest returns the newest attempt of a task whose output is kept.
func (s *Store) FindNewest(job string, task uint32) executor.Newest {
	s.mu.RLock()
	_, later := s.index[newestKey(job, task)]
	_, first := s.index[keyOf(job, task, 1)]
	err := s.unknown()
	s.mu.RUnlock()
	if later {
		var attempt uint32
		if attempt, err = s.laterAttempt(job, task); err == nil {
			return executor.Newest{Attempt: attempt}
		}
	}
	switch {
	case first && (!later || errors.Is(err, executor.ErrUnknownAttempt)):
		return executor.Newest{Attempt: 1}
	case errors.Is(err, executor.ErrUnknownAttempt):
		return executor.Newest{}
	}
	return executor.Newest{Err: err}
}

// laterAttempt reads which attempt the newest key of a task leads to.
func (s *Store) laterAttempt(job string, task uint32) (uint32, error) {
	f, h, _, err := s.openAt(newestKey(job, task))
	if err != nil {
		return 0, err
	}
	_ = f.Close()
	if h.id.Job != job || h.id.Task != task {
		return 0, executor.ErrUnknownAttempt
	}
	return h.id.Attempt, nil
}

// isNewest reports whether no later attempt of the task is kept than this one.
// REQUIRES: s.writing held.
func (s *Store) isNewest(id executor.ID) bool {
	if id.Attempt <= 1 {
		return true
	}
	known := s.FindNewest(id.Job, id.Task)
	return known.Err != nil || known.Attempt < id.Attempt
}

// Fate is what has become of an attempt's output.
type Fate uint8

// The fates.
const (
	Unknown Fate = iota // it was never put, or was removed long ago
	Kept
	Removed
)

// FateOf returns what has become of an attempt's output: executor.ErrUnreadable if that
// cannot be told now.
func (s *Store) FateOf(id executor.ID) (Fate, error) {
	found, err := s.Find(id.Job, id.Task, id.Attempt)
	switch {
	case errors.Is(err, executor.ErrUnreadable) && !s.isIndexed(id):
		return Unknown, err
	case errors.Is(err, executor.ErrUnreadable), err == nil && found == id:
		return Kept, nil
	case err == nil, errors.Is(err, executor.ErrDamaged):
		return Unknown, nil
	}
	if _, was := s.Removed(id.Job, id.Task, id.Attempt); was {
		return Removed, nil
	}
	return Unknown, nil
}

func (s *Store) isIndexed(id executor.ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.index[keyOfID(id)]
	return ok
}

// Has reports whether an attempt's output is kept. One that cannot be read now counts.
func (s *Store) Has(id executor.ID) bool {
	if !s.isIndexed(id) {
		return false
	}
	found, err := s.Find(id.Job, id.Task, id.Attempt)
	return errors.Is(err, executor.ErrUnreadable) || err == nil && found == id
}

// Open opens a stream of an attempt: executor.ErrUnknownAttempt if it is not kept, or
// was never there, executor.ErrUnreadable, executor.ErrDamaged. What was opened can be
// read to its end, whatever is removed meanwhile.
func (s *Store) Open(id executor.ID, stream int) (io.ReadSeekCloser, error) {
	f, h, off, err := s.openAt(keyOfID(id))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case h.id != id:
		return nil, executor.ErrUnknownAttempt
	case h.note != "":
		return nil, fmt.Errorf("%w: %s", executor.ErrUnknownAttempt, h.note)
	case h.apart[stream]:
		return s.folder.openApart(id, stream)
	}
	b := make([]byte, h.total()-int64(h.size))
	if _, err = f.ReadAt(b, off+int64(h.size)); err != nil {
		return nil, fmt.Errorf("output in %s at byte %d: %w", filepath.Base(f.Name()), off, readError(err))
	}
	if !h.matches(b) {
		return nil, fmt.Errorf("output in %s at byte %d: %w", filepath.Base(f.Name()), off, executor.ErrDamaged)
	}
	if stream == 0 {
		b = b[:h.inline(0)]
	} else {
		b = b[h.inline(0):]
	}
	return text{bytes.NewReader(b)}, nil
}

// text is a small output in memory.
type text struct{ *bytes.Reader }

// Close implements io.Closer.
func (text) Close() error { return nil }
