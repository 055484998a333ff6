package outputs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// ErrClosed reports that the store was closed.
var ErrClosed = errors.New("store of outputs is closed")

// Config of a store. All fields but Logger must be set.
type Config struct {
	// Dir is made if it is missing. REQUIRES: nobody else uses it.
	Dir      string
	Keep     time.Duration
	MaxBytes int64
	// Aside takes what the store cannot use out of its way.
	Aside  func(path string, why error)
	Now    func() time.Time
	Logger zerolog.Logger

	disk *disk // nil = the real one; tests have it fail
}

// Bounds of the store's files.
const (
	// MaxInline is the largest stream that goes into a segment. Above it an inode is
	// cheap beside the bytes.
	MaxInline = 64 << 10
	// maxSegment bounds a segment file in bytes, and maxEntries in outputs.
	maxSegment = 8 << 20
	maxEntries = 8192
	// minCharge is what each output counts for at least: its place in memory and in
	// the index must not be for nothing.
	minCharge = 1 << 10
	// fractions is into how many parts bytes and age are cut: so much more than what
	// is over a bound is removed with it at most.
	fractions = 24
)

// Store keeps outputs. All methods are safe for concurrent use.
type Store struct {
	cfg    Config
	folder folder
	max    int64 // bytes; Config's, or half of the disk
	quit   chan struct{}
	done   chan struct{}

	// writing is held by who changes files; the fields up to mu are guarded by it.
	writing sync.Mutex
	file    *os.File // of the active segment; nil = none is active
	entries []entry  // of the active segment
	next    uint32   // number of the next segment
	closed  bool

	mu sync.RWMutex // never held during a call of the disk
	// index is where each output is: number of the segment << 32 | offset.
	index    map[uint64]uint64
	segments []*segment // oldest first; the active one is the last
	removed  []removed  // oldest first
	unread   []uint32   // segments that could not be read, and may be later; ascending
	unreadBy error      // why; nil = unread is empty
	byAge    uint64
	byBytes  uint64
	trouble  string
}

// segment is what the store knows of a segment file. Guarded by Store.mu.
type segment struct {
	number uint32
	salt   salt
	size   int64 // of what is good
	summary
}

// Open reads what is kept. Whatever stands in the folder, it opens: what cannot be
// used is put aside.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir == "" || cfg.Keep <= 0 || cfg.MaxBytes <= 0 || cfg.Aside == nil || cfg.Now == nil {
		return nil, fmt.Errorf("open outputs at %q: keep %s and max bytes %d must be positive", cfg.Dir, cfg.Keep, cfg.MaxBytes)
	}
	if cfg.disk == nil {
		cfg.disk = &realDisk
	}
	s := &Store{cfg: cfg, index: map[uint64]uint64{}, quit: make(chan struct{}), done: make(chan struct{})}
	s.folder.path, s.folder.disk, s.folder.aside, s.folder.log = cfg.Dir, cfg.disk, cfg.Aside, cfg.Logger
	err := s.folder.openRoot()
	if err == nil {
		s.max = min(cfg.MaxBytes, halfOfDisk(cfg.Dir))
		err = s.load()
	}
	if err != nil {
		return nil, fmt.Errorf("open outputs at %s: %w", cfg.Dir, errors.Join(err, s.closeFiles()))
	}
	go s.run()
	return s, nil
}

// halfOfDisk returns half of what a file system has at all.
func halfOfDisk(path string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil || st.Blocks == 0 {
		return 1 << 62
	}
	return int64(min(st.Blocks, 1<<40)) * st.Bsize / 2
}

// run removes what gets too old.
func (s *Store) run() {
	defer close(s.done)
	tick := time.NewTicker(min(max(s.cfg.Keep/fractions, time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Sweep()
		case <-s.quit:
			return
		}
	}
}

// Close lets go of the files; nothing is lost.
func (s *Store) Close() error {
	s.writing.Lock()
	if s.closed {
		s.writing.Unlock()
		return nil
	}
	s.closed = true
	s.writing.Unlock()
	close(s.quit)
	<-s.done
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.closeFiles()
}

func (s *Store) closeFiles() (err error) {
	if s.file != nil {
		err = s.file.Close()
		s.file = nil
	}
	if root := s.folder.at(); root != nil {
		err = errors.Join(err, root.Close())
	}
	return err
}

// Stats returns what is kept.
func (s *Store) Stats() executor.OutputStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := executor.OutputStats{
		MaxBytes: s.max, Keep: s.cfg.Keep, RemovedByAge: s.byAge, RemovedByBytes: s.byBytes, Trouble: s.trouble,
	}
	for _, g := range s.segments {
		out.Outputs += int64(g.count)
		out.Bytes += g.charge
		if g.count > 0 && (out.Oldest.IsZero() || g.first < out.Oldest.UnixMilli()) {
			out.Oldest = time.UnixMilli(g.first)
		}
	}
	return out
}
