package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// parallel is how many files are fetched at once.
const parallel = 8

// Plan says where files go.
type Plan struct {
	Job string
	Dir string // is made if it is not there
	// ByTask puts the files of each task into a folder with its index as name.
	ByTask bool
	// Force overwrites files that are there.
	Force bool
}

// Outcome is what came of it.
type Outcome struct {
	Fetched, Kept int // Kept were there before, with the same bytes
	Bytes         int64
}

// saving is a plan that is carried out.
type saving struct {
	*Fetcher
	Plan
	root *os.Root

	mu      sync.Mutex
	outcome Outcome
	there   int
	first   string          // of those that are there
	cleaned map[string]bool // folders
}

// name is where a file goes, below the folder.
func (p *Plan) name(f *File) string {
	if p.ByTask {
		return strconv.FormatUint(uint64(f.Task), 10) + "/" + f.Path
	}
	return f.Path
}

// Save fetches files. Those that cannot have their names, as others have them, are told as ErrThere once all others are
// there; any other error ends it.
func (f *Fetcher) Save(ctx context.Context, list []File, p Plan) (Outcome, error) {
	if err := p.checkNames(list); err != nil {
		return Outcome{}, err
	}
	if err := os.MkdirAll(p.Dir, 0o777); err != nil {
		return Outcome{}, fmt.Errorf("fetch files: %w", err)
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return Outcome{}, fmt.Errorf("fetch files: %w", err)
	}
	defer root.Close()
	var sum int64
	for i := range list {
		sum += list[i].Size
	}
	f.progress.Begin("fetching", sum)
	defer f.progress.End()
	s := saving{Fetcher: f, Plan: p, root: root, cleaned: map[string]bool{}}
	err = cli.InParallel(ctx, len(list), parallel, func(ctx context.Context, i int) error {
		return s.save(ctx, &list[i])
	})
	switch {
	case err != nil:
	case s.there == 1:
		err = fmt.Errorf("%s in %s %w: move it away, or fetch into another folder", s.first, p.Dir, ErrThere)
	case s.there > 1:
		err = fmt.Errorf("%s and %d other files in %s: each %w: move them away, or fetch into another folder",
			s.first, s.there-1, p.Dir, ErrThere)
	}
	return s.outcome, err
}

// checkNames refuses a list of which two files have one name.
func (p *Plan) checkNames(list []File) error {
	met := make(map[string]struct{}, len(list))
	for i := range list {
		name := p.name(&list[i])
		if _, twice := met[name]; twice {
			return fmt.Errorf("job %s has two files %s: fetch its tasks one by one, with --task", p.Job, name)
		}
		met[name] = struct{}{}
	}
	return nil
}

// save fetches one file, unless it is there.
func (s *saving) save(ctx context.Context, f *File) error {
	name := s.name(f)
	s.clean(path.Dir(name))
	same, err := s.look(name, f)
	switch {
	case errors.Is(err, ErrThere):
		s.refused(name)
		return nil
	case err != nil:
		return fmt.Errorf("fetch %s: %w", name, err)
	case same:
		s.progress.Done(f.Size)
		s.count(Outcome{Kept: 1})
		return nil
	}
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("fetch %s: %w", name, err)
		}
	}
	switch err := s.download(ctx, name, f); {
	case errors.Is(err, ErrThere):
		s.refused(name)
	case err != nil:
		return fmt.Errorf("fetch %s: %w", name, err)
	default:
		s.count(Outcome{Fetched: 1, Bytes: f.Size})
	}
	return nil
}

// count notes what became of a file.
func (s *saving) count(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome.Fetched += o.Fetched
	s.outcome.Kept += o.Kept
	s.outcome.Bytes += o.Bytes
}

// refused notes a file that cannot have its name.
func (s *saving) refused(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there++; s.there == 1 || name < s.first {
		s.first = name
	}
}

// look reports whether a file is there with the same bytes; ErrThere: something else has its name.
func (s *saving) look(name string, f *File) (same bool, err error) {
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, ErrThere
	case info.Size() == f.Size:
		same, err = s.hasBytes(name, f)
	}
	if err == nil && !same && !s.Force {
		err = ErrThere
	}
	return same, err
}
