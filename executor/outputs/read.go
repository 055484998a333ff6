package outputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// lookup returns where an output is.
func (s *Store) lookup(key uint64) (number uint32, off int64, own salt, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	place, ok := s.index[key]
	if !ok {
		return 0, 0, own, false
	}
	number, off = uint32(place>>32), int64(uint32(place))
	i, ok := slices.BinarySearchFunc(s.segments, number, func(g *segment, n uint32) int { return cmp.Compare(g.number, n) })
	if !ok {
		return 0, 0, own, false
	}
	return number, off, s.segments[i].salt, true
}

// openAt opens the segment that has an attempt's output, and reads its head.
func (s *Store) openAt(key uint64) (f *os.File, h head, off int64, err error) {
	number, off, own, ok := s.lookup(key)
	if !ok {
		return nil, h, 0, executor.ErrUnknownAttempt
	}
	f, err = s.openFile(fileOf(number, segmentExt), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) { // removed just now
		return nil, h, 0, executor.ErrUnknownAttempt
	}
	if err != nil {
		return nil, h, 0, err
	}
	if h, err = readHead(f, own, off); err != nil {
		return nil, h, 0, errors.Join(err, f.Close())
	}
	return f, h, off, nil
}

// Find returns the full id of an attempt whose output is kept.
func (s *Store) Find(job string, task, attempt uint32) (executor.ID, bool) {
	f, h, _, err := s.openAt(keyOf(job, task, attempt))
	if err != nil {
		return executor.ID{}, false
	}
	_ = f.Close()
	return h.id, h.id.Job == job && h.id.Task == task && h.id.Attempt == attempt
}

// Has reports whether an attempt's output is kept.
func (s *Store) Has(id executor.ID) bool {
	s.mu.RLock()
	_, may := s.index[keyOfID(id)]
	s.mu.RUnlock()
	if !may {
		return false
	}
	found, ok := s.Find(id.Job, id.Task, id.Attempt)
	return ok && found == id
}

// Open opens a stream of an attempt: executor.ErrUnknownAttempt if it is not kept, or
// was never there. What was opened can be read to its end, whatever is removed
// meanwhile.
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
		return s.openApart(id, stream)
	}
	b := make([]byte, h.total()-int64(h.size))
	if _, err = f.ReadAt(b, off+int64(h.size)); err != nil {
		return nil, fmt.Errorf("output in %s at byte %d: %w: %w", f.Name(), off, ErrDamaged, err)
	}
	if !h.matches(b) {
		return nil, fmt.Errorf("output in %s at byte %d: %w", f.Name(), off, ErrDamaged)
	}
	if stream == 0 {
		b = b[:h.inline(0)]
	} else {
		b = b[h.inline(0):]
	}
	return text{bytes.NewReader(b)}, nil
}

// openApart opens a stream that has a file of its own.
func (s *Store) openApart(id executor.ID, stream int) (io.ReadSeekCloser, error) {
	f, err := s.openFile(apartName(id, stream), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: its file was removed", executor.ErrUnknownAttempt)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// text is a small output in memory.
type text struct{ *bytes.Reader }

// Close implements io.Closer.
func (text) Close() error { return nil }
