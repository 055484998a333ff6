package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// Options of a store.
type Options struct {
	// Dir is the store's folder. One process uses it at a time: a broker holds its data_dir.
	Dir string
	// Now returns the time by which blobs are used, and go.
	Now    func() time.Time
	Limits Limits
	// MaxOpen is how many files may be open at a time; 0: 256. Beyond that ErrBusy is returned.
	MaxOpen int
}

// Limit is what a space may have.
type Limit struct {
	// Max is how many bytes its blobs may take; each counts in blocks of 4 KiB, and as one at least.
	Max int64
	// Keep is how long an unpinned blob stays that nobody puts, asks for or fills; 0: forever, or until room is needed.
	Keep time.Duration
}

// Limits are those of each Space.
type Limits struct{ Own, Cache, Outgoing Limit }

// Store is an open store. It is safe for concurrent use.
//
// Assumption: a sync that returned survives a crash of the machine, and a rename is atomic.
type Store struct {
	dir     string // absolute
	disk    disk
	now     func() time.Time
	limits  [spaces]Limit
	open    chan struct{} // has one for each file that is open
	counter atomic.Uint64 // of files in newFolder
	piece   int64         // files.PieceBytes; tests have smaller ones
	killed  bool          // nobody closed the store before; for load

	mu     sync.Mutex // held over memory only, never over a file
	closed bool
	// pinned: Repin or PinsSaid was called. Before, nobody knows what is pinned, and so nothing is removed.
	pinned bool
	index
}

// Open opens or creates a store, and reads from its files what it has. It removes what a crash has left half done.
// Nothing goes before Repin has said what is pinned.
func Open(o Options) (*Store, error) { return open(o, machine{boot: readBoot()}) }

// machine is what tests set of the machine.
type machine struct {
	boot  string
	fault func(point) error // see disk
}

func open(o Options, m machine) (*Store, error) {
	if o.MaxOpen == 0 {
		o.MaxOpen = 256
	}
	s := &Store{now: o.Now, open: make(chan struct{}, o.MaxOpen), piece: files.PieceBytes, index: newIndex()}
	s.limits = [spaces]Limit{Own: o.Limits.Own, Cache: o.Limits.Cache, Outgoing: o.Limits.Outgoing}
	dir, err := filepath.Abs(o.Dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open store of files: %w", asFull(err))
	}
	s.dir = dir
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open store of files: %w", err)
	}
	folder, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store of files: %w", err), root.Close())
	}
	s.disk = disk{root: root, folder: folder, fault: m.fault}
	if err = s.load(); err == nil {
		err = s.checkBoot(m.boot)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store of files in %s: %w", dir, asFull(err)), s.disk.close())
	}
	return s, nil
}

// Usage is what a space has.
type Usage struct {
	Bytes, Max int64 // what counts against the quota, partial blobs and what is being written included
	Blobs      int   // partial ones included
}

// Usage returns what a space has.
func (s *Store) Usage(space Space) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{Bytes: s.used[space], Max: s.limits[space].Max, Blobs: s.count[space]}
}

// acquire takes n of the files that may be open.
func (s *Store) acquire(n int) error {
	for i := range n {
		select {
		case s.open <- struct{}{}:
		default:
			s.release(i)
			return fmt.Errorf("%w: %d files of the store are open, the most that may be", ErrBusy, cap(s.open))
		}
	}
	return nil
}

func (s *Store) release(n int) {
	for range n {
		<-s.open
	}
}

// check returns why a call at a place cannot go on. REQUIRES: s.mu held.
func (s *Store) check(at Place) error {
	if s.closed {
		return fmt.Errorf("store of files: %w", ErrClosed)
	}
	return at.check()
}
