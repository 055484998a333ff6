package outputs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStaleIndexIsNotTaken: a segment that was sealed, and goes on after a restart, has
// an index of before. If the next one cannot be written, as on a full disk, the old
// one must not hide what came since.
func TestStaleIndexIsNotTaken(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	s.put(item(1, "one", ""))
	s.at(moment.Add(2 * time.Hour))
	s.Sweep() // seals what begins to be old
	s.at(moment)
	s.reopen()
	s.put(item(2, "two", ""))
	inTheWay := filepath.Join(s.cfg.Dir, fileOf(0, indexExt+newExt))
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	later := item(3, "three", "")
	later.At = moment.Add(3 * time.Hour)
	s.put(later) // in the next segment
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	for n, want := range []string{1: "one", 2: "two", 3: "three"} {
		if n > 0 && s.read(n, 0) != want {
			t.Errorf("task %d: %q", n, s.read(n, 0))
		}
	}
}

// TestNumbersAreNotUsedAgain: of the removed segments the oldest are forgotten, also
// when a start has found none but removed ones.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = 1 << 10 // a segment for each
	s := openShelf(t, cfg)
	for n := range maxRemoved + 1 {
		s.put(item(n, "x", ""))
	}
	for day, n := range []int{1000, 1001} {
		s.at(moment.Add(time.Duration(2*day+2) * 24 * time.Hour))
		s.Sweep()
		s.reopen()
		it := item(n, "x", "")
		it.At = s.now
		s.put(it)
	}
	s.at(moment.Add(8 * 24 * time.Hour))
	s.Sweep()
	for _, n := range []uint32{1000, 1001} {
		if _, ok := s.Removed("a.1", n, 1); !ok {
			t.Errorf("that %d was removed is forgotten before what was removed earlier", n)
		}
	}
}

// TestFolderInTheWay: what others have put in the place of a large output does not keep
// the store from taking it, and those beside it.
func TestFolderInTheWay(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	it := s.large(1, MaxInline+1)
	if err := os.MkdirAll(filepath.Join(s.cfg.Dir, apartName(it.ID, 0), "deeper"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.put(it, item(2, "two", ""))
	if got := s.read(1, 0); len(got) != MaxInline+1 || s.read(2, 0) != "two" {
		t.Errorf("read %.80q, %q; put aside: %v", got, s.read(2, 0), s.aside)
	}
}

// large is the output of an attempt that has a file.
func (s *shelf) large(n int, size int64) Item {
	s.Helper()
	path := filepath.Join(s.TempDir(), "out")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		s.Fatal(err)
	}
	it := item(n, "", "")
	it.Streams[0] = Stream{Path: path, Size: size}
	return it
}

// TestOneThatIsTooLarge: an output that is more than all may be does not push the
// others out, and the answer says why it is not there.
func TestOneThatIsTooLarge(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = 1 << 20
	s := openShelf(t, cfg)
	s.put(item(1, "one", ""))
	s.put(s.large(2, 2<<20))
	if got := s.read(1, 0); got != "one" {
		t.Errorf("the other: %q", got)
	}
	if got := s.read(2, 0); !strings.Contains(got, "max_bytes") {
		t.Errorf("the large one: %q", got)
	}
}

// TestFoldersWithoutRights: a task of the same user that takes the rights off a folder
// does not keep the broker from its start.
func TestFoldersWithoutRights(t *testing.T) {
	s := openShelf(t, configAt(filepath.Join(t.TempDir(), "outputs")))
	s.put(item(1, "one", ""))
	apart := filepath.Join(s.cfg.Dir, apartFolder)
	if err := errors.Join(os.Chmod(apart, 0), os.Chmod(s.cfg.Dir, 0)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // nothing is forbidden to root: see what it is given back
		s.reopen()
		for _, dir := range []string{s.cfg.Dir, apart} {
			if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", dir, st.Mode(), err)
			}
		}
		return
	}
	s.reopen()
	if got := s.read(1, 0); got != "one" {
		t.Errorf("read %q", got)
	}
}
