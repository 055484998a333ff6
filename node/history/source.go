package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Folder is where a broker keeps its history, in its data_dir.
const Folder = "history"

// ErrNone reports that there is nothing that was kept.
var ErrNone = errors.New("no history is kept")

// Source is what is gone through: an exported file, or a broker's segments, oldest first. They are opened at once, so
// that a broker that runs may drop some meanwhile.
type Source struct {
	Segments []Segment
	Notes    []string // what was passed over, for people
}

// Segment is an open file.
type Segment struct {
	Name string
	Size int64 // when it was opened: what a broker writes later is not read
	file *os.File
	// broken: of a broker's own, and its state is damaged. What stands behind that is of use where the segment before
	// leads there.
	broken bool
}

// Records reads the segment from its beginning; several readers may read at once.
func (s *Segment) Records() (*Reader, error) {
	r, err := NewReader(s.file, s.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return r, nil
}

// OpenSource opens an exported file, a broker's data_dir or the folder history in it. Errors: ErrNone, those of os.
func OpenSource(path string) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	paths := []string{path}
	if !st.IsDir() && !st.Mode().IsRegular() { // to open a pipe would wait for who writes it
		return nil, fmt.Errorf("open history: %w: %s is no regular file", ErrFormat, path)
	}
	if st.IsDir() {
		if paths, err = segmentPaths(path); err != nil {
			return nil, err
		}
	}
	s := &Source{}
	for _, p := range paths {
		if err = s.open(p, st.IsDir()); err != nil {
			return nil, errors.Join(fmt.Errorf("open history: %w", err), s.Close())
		}
	}
	if len(s.Segments) == 0 {
		return nil, fmt.Errorf("%w in %s yet: no state is complete", ErrNone, path)
	}
	return s, nil
}

// segmentPaths returns a folder's segments, oldest first.
func segmentPaths(dir string) (paths []string, err error) {
	if st, cause := os.Stat(filepath.Join(dir, Folder)); cause == nil && st.IsDir() {
		dir = filepath.Join(dir, Folder)
	}
	names, err := segmentNames(dir)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	for _, n := range names {
		paths = append(paths, segmentPath(dir, n))
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w in %s: give a broker's data_dir; its key history.max_bytes may be 0", ErrNone, dir)
	}
	return paths, nil
}

// open adds a file. One that its broker has dropped just now is passed over, and so is one whose state is not complete:
// its broker writes it now, or could not. segment: it is of a broker's folder.
func (s *Source) open(path string, segment bool) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	x := Segment{Name: path, Size: st.Size(), file: f}
	switch _, begun, err := x.begun(); {
	case segment && errors.Is(err, ErrFormat) && errors.Is(err, ErrTorn):
		s.Notes = append(s.Notes, path+" ends within its first lines and is passed over")
		return f.Close()
	case segment && errors.Is(err, ErrFormat):
		s.Notes = append(s.Notes, fmt.Sprintf("%v: passed over: a gap", err))
		return f.Close()
	case errors.Is(err, ErrFormat):
		return errors.Join(err, f.Close())
	case segment && errors.Is(err, ErrDamaged):
		x.broken = true
	case err == nil && !begun:
		s.Notes = append(s.Notes, path+" has no complete state and is passed over")
		return f.Close()
	}
	s.Segments = append(s.Segments, x)
	return nil
}

// begun returns the entry of a segment's state; false: that is not complete.
func (s *Segment) begun() (entry uint64, ok bool, err error) {
	r, err := s.Records()
	for err == nil {
		var rec Record
		if rec, err = r.Next(); err == nil && rec.Kind == KindBegun {
			return rec.Number, true, nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) && !errors.Is(err, ErrFormat) {
		err = nil
	}
	return 0, false, err
}

// Size returns the bytes of all segments.
func (s *Source) Size() (n int64) {
	for i := range s.Segments {
		n += s.Segments[i].Size
	}
	return n
}

// Close closes the files.
func (s *Source) Close() error {
	var errs []error
	for i := range s.Segments {
		errs = append(errs, s.Segments[i].file.Close())
	}
	return errors.Join(errs...)
}
