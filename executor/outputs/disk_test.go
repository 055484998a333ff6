package outputs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// trial is a disk that does as a test says, and remembers what was asked of it.
type trial struct {
	mu     sync.Mutex
	refuse func(name string) error // of open; nil = nothing
	opened int
	did    []string // syncs and moves
	cross  bool     // files move between file systems
}

func (d *trial) disk() *disk {
	return &disk{
		open: func(below *os.Root, name string, flags int) (*os.File, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.opened++
			if d.refuse != nil {
				if err := d.refuse(name); err != nil {
					return nil, &os.PathError{Op: "open", Path: name, Err: err}
				}
			}
			return realDisk.open(below, name, flags)
		},
		sync: func(f *os.File) error {
			d.note("sync " + filepath.Base(f.Name()))
			return realDisk.sync(f)
		},
		move: func(from string, folder *os.File, to string) error {
			if d.note("move " + filepath.Base(from)); d.cross {
				return unix.EXDEV
			}
			return realDisk.move(from, folder, to)
		},
	}
}

func (d *trial) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, what)
}

// set changes what is refused, and forgets what was done.
func (d *trial) set(refuse func(name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse, d.opened, d.did = refuse, 0, nil
}

func openTrial(t *testing.T, cfg Config) (*shelf, *trial) {
	t.Helper()
	d := &trial{}
	cfg.disk = d.disk()
	return openShelf(t, cfg), d
}

// TestRemovedIsCheap: that an output was never here is known without a look at the
// disk, however much was removed. It took 2.5 ms, since each removed index was opened.
func TestRemovedIsCheap(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = 1 << 10 // a segment for each
	s, d := openTrial(t, cfg)
	for n := range maxRemoved + 2 {
		s.put(item(n, "x", ""))
	}
	for range 2 {
		d.set(nil)
		if _, was := s.Removed("a.1", 1<<20, 1); was || d.opened > 0 {
			t.Errorf("one that never was: %v, %d files opened", was, d.opened)
		}
		if _, was := s.Removed("a.1", 100, 1); !was || d.opened != 1 {
			t.Errorf("one that was removed: %v, %d files opened", was, d.opened)
		}
		s.reopen()
	}
}

// TestWhatPassesIsNoDamage: a segment that cannot be opened or read for a moment is not
// put aside, its large outputs are no strays, questions for it get another answer than
// "never was", and it is there again by itself. It was put aside as damaged, for good.
func TestWhatPassesIsNoDamage(t *testing.T) {
	for _, why := range []error{unix.EMFILE, unix.EIO} {
		cfg := configAt(t.TempDir())
		s, d := openTrial(t, cfg)
		s.put(s.large(1, MaxInline+1), item(2, "two", ""))
		s.seal()
		next := item(3, "three", "")
		next.At = moment.Add(cfg.Keep / 12)
		s.put(next)
		d.set(func(name string) error {
			if name == fileOf(0, segmentExt) {
				return why
			}
			return nil
		})
		if _, err := s.Store.Open(numbered(2), 0); !errors.Is(err, executor.ErrUnreadable) || !errors.Is(err, why) {
			t.Errorf("while it is open: %v", err)
		}
		if !s.Has(numbered(2)) {
			t.Error("it could run again")
		}
		s.reopen()
		if got := s.read(3, 0); got != "three" {
			t.Errorf("another segment's: %q", got)
		}
		for _, n := range []int{1, 2, 99} {
			if _, err := s.Store.Open(numbered(n), 0); !errors.Is(err, executor.ErrUnreadable) ||
				!strings.Contains(err.Error(), why.Error()) {
				t.Errorf("after a restart: %v", err)
			}
			if fate, err := s.FateOf(numbered(n)); !errors.Is(err, executor.ErrUnreadable) {
				t.Errorf("after a restart its fate is %d, %v", fate, err)
			}
		}
		d.set(nil)
		s.put(item(4, "four", ""))
		if got := s.read(1, 0); len(got) != MaxInline+1 || s.read(2, 0) != "two" || s.read(4, 0) != "four" {
			t.Errorf("afterwards: %.80q, %q, %q", got, s.read(2, 0), s.read(4, 0))
		}
		if _, err := s.Store.Open(numbered(99), 0); !errors.Is(err, executor.ErrUnknownAttempt) || len(s.aside) > 0 {
			t.Errorf("what never was: %v; put aside: %v", err, s.aside)
		}
	}
}

// TestLargeOutputsAreSynced: who has the only other copy of an output, such as a node
// whose Job is removed, lets it go once it was taken. It was moved without a sync.
func TestLargeOutputsAreSynced(t *testing.T) {
	s, d := openTrial(t, configAt(t.TempDir()))
	s.put(s.large(1, MaxInline+1))
	if got := strings.Join(d.did, ", "); got != "sync out, move out" {
		t.Errorf("did %s", got)
	}
}

// TestCopyIsWholeOrNothing: between file systems an output is copied, and a crash in
// between leaves nothing by its name. It was written under it.
func TestCopyIsWholeOrNothing(t *testing.T) {
	s, d := openTrial(t, configAt(t.TempDir()))
	d.cross = true
	it := s.large(1, MaxInline+1)
	before := s.files(apartFolder)
	during := []string{}
	s.folder.disk.sync = func(f *os.File) error {
		if strings.Contains(f.Name(), apartFolder) {
			during = s.files(apartFolder)
		}
		return realDisk.sync(f)
	}
	s.put(it)
	if len(before) != 0 || len(during) != 1 || !strings.HasSuffix(during[0], newExt) {
		t.Errorf("while it is copied there is %v", during)
	}
	if got := s.read(1, 0); len(got) != MaxInline+1 {
		t.Errorf("read %.80q", got)
	}
	if names := s.files(apartFolder); len(names) != 1 || names[0] != filepath.Base(apartName(it.ID, 0)) {
		t.Errorf("afterwards there is %v", names)
	}
}

// TestClosedIsNotDamaged: who asks a store that ends is told that it cannot be read now,
// not that what it keeps is damaged.
func TestClosedIsNotDamaged(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	kept := item(1, "mine", "")
	s.put(kept)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(kept.ID, 0); !errors.Is(err, executor.ErrUnreadable) {
		t.Error(err)
	}
}
