package outputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	raced.FewerChecks("25")
	goleak.VerifyTestMain(m)
}

// moment is when all attempts of the tests end, unless they say otherwise.
var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a store with a clock of its own.
type shelf struct {
	testing.TB
	*Store
	cfg   Config
	now   time.Time
	aside []string // base names of what was put aside
	mu    sync.Mutex
}

func configAt(dir string) Config {
	return Config{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30, Logger: zerolog.Nop()}
}

func openShelf(t testing.TB, cfg Config) *shelf {
	t.Helper()
	s := &shelf{TB: t, cfg: cfg, now: moment}
	s.cfg.Now = func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}
	s.cfg.Aside = func(path string, _ error) {
		s.aside = append(s.aside, filepath.Base(path))
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
	s.reopen()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *shelf) reopen() {
	s.Helper()
	if s.Store != nil {
		if err := s.Close(); err != nil {
			s.Fatal(err)
		}
	}
	var err error
	if s.Store, err = Open(s.cfg); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) at(now time.Time) {
	s.mu.Lock()
	s.now = now
	s.mu.Unlock()
}

func numbered(n int) executor.ID {
	return executor.ID{Job: "a.1", Task: uint32(n), Attempt: 1, Token: 7}
}

func item(n int, out, errs string) Item {
	return Item{ID: numbered(n), At: moment, Streams: [2]Stream{{Text: []byte(out)}, {Text: []byte(errs)}}}
}

func (s *shelf) put(items ...Item) {
	s.Helper()
	if err := s.Put(items); err != nil {
		s.Fatal(err)
	}
}

// read returns a stream's text, or the error's.
func (s *shelf) read(n, stream int) string {
	r, err := s.Store.Open(numbered(n), stream)
	if err != nil {
		return "error: " + err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// TestKeepsAndFinds: both streams of each, over a restart, and nothing of others.
func TestKeepsAndFinds(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	s.put(item(1, "one\n", ""), item(2, "", "two"), item(3, "", ""))
	s.put(item(1, "a repeat changes nothing", ""))
	for range 2 {
		for n, want := range map[int][2]string{1: {"one\n", ""}, 2: {"", "two"}, 3: {}} {
			for stream := range want {
				if got := s.read(n, stream); got != want[stream] {
					t.Errorf("task %d, stream %d: %q, want %q", n, stream, got, want[stream])
				}
			}
		}
		if got, err := s.Find("a.1", 2, 1); err != nil || got != numbered(2) {
			t.Errorf("found %v, %v", got, err)
		}
		other := numbered(1)
		other.Token++
		if _, err := s.Store.Open(other, 0); !errors.Is(err, executor.ErrUnknownAttempt) || s.Has(other) {
			t.Errorf("another token: %v", err)
		}
		if got := s.read(4, 0); !strings.Contains(got, "unknown attempt") {
			t.Errorf("what never was: %q", got)
		}
		if st := s.Stats(); st.Outputs != 3 || st.Bytes != 3*minCharge || !st.Oldest.Equal(moment) {
			t.Errorf("stats: %+v", st)
		}
		s.reopen()
	}
}

// TestLargeOnesStayFiles, and go with their segment.
func TestLargeOnesStayFiles(t *testing.T) {
	dir := t.TempDir()
	s := openShelf(t, configAt(dir))
	large := strings.Repeat("x", MaxInline+1)
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	it := item(1, "", "small")
	it.Streams[0] = Stream{Path: path, Size: int64(len(large))}
	s.put(it)
	s.put(it) // as after a crash between two steps
	if err := os.WriteFile(filepath.Join(dir, apartFolder, "a.1-9-1-7.stdout"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	if s.read(1, 0) != large || s.read(1, 1) != "small" {
		t.Error("it cannot be read")
	}
	if names := s.files(apartFolder); len(names) != 1 {
		t.Errorf("large files: %v, want the stray one gone", names)
	}
	reader, err := s.Store.Open(numbered(1), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s.at(moment.Add(25 * time.Hour))
	s.Sweep()
	if names := s.files(apartFolder); len(names) != 0 {
		t.Errorf("large files: %v after their removal", names)
	}
	if b, err := io.ReadAll(reader); err != nil || string(b) != large {
		t.Errorf("a reader that had it open read %d bytes, %v", len(b), err)
	}
}

func (s *shelf) files(dir string) []string {
	names, err := readNames(s.folder.at(), dir)
	if err != nil {
		s.Fatal(err)
	}
	return names
}

// TestBounds: the oldest go, by age and by bytes, and the answer says why and when,
// also after a restart.
func TestBounds(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = 100 << 10
	s := openShelf(t, cfg)
	for n := range 300 {
		it := item(n, fmt.Sprint("output ", n), "")
		it.At = moment.Add(time.Duration(n) * time.Minute)
		s.at(it.At)
		s.put(it)
		if st := s.Stats(); st.Bytes > st.MaxBytes {
			t.Fatalf("%d bytes after %d outputs", st.Bytes, n)
		}
	}
	if st := s.Stats(); st.Outputs < 100-100/fractions-1 || st.RemovedByBytes != 300-uint64(st.Outputs) ||
		st.RemovedByAge != 0 {
		t.Errorf("stats: %+v", st)
	}
	last := moment.Add(299 * time.Minute)
	s.reopen()
	if why, ok := s.Removed("a.1", 0, 1); !ok || why.ByAge || why.At.Before(moment) || why.At.After(last) {
		t.Errorf("the first: %+v, %v", why, ok)
	}
	if _, ok := s.Removed("a.1", 299, 1); ok || s.read(299, 0) != "output 299" {
		t.Error("the last was removed")
	}
	s.at(last.Add(23 * time.Hour))
	s.Sweep()
	if got := s.read(299, 0); got != "output 299" {
		t.Errorf("the last before its time: %q", got)
	}
	s.at(last.Add(26 * time.Hour))
	s.Sweep()
	if why, ok := s.Removed("a.1", 299, 1); !ok || !why.ByAge {
		t.Errorf("the last: %+v, %v", why, ok)
	}
	if st := s.Stats(); st.Outputs != 0 || st.Bytes != 0 || !st.Oldest.IsZero() || len(s.index) != 0 {
		t.Errorf("at the end: %+v, %d in the index", st, len(s.index))
	}
}

// TestRemovalIsRememberedWithinBounds: of what was removed only so much stays.
func TestRemovalIsRememberedWithinBounds(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = 1 << 10 // a segment for each
	s := openShelf(t, cfg)
	for n := range maxRemoved + 20 {
		s.put(item(n, "x", ""))
	}
	if n := len(s.files(".")); n > maxRemoved+4 {
		t.Errorf("%d files", n)
	}
	if _, ok := s.Removed("a.1", 2, 1); ok {
		t.Error("the first is remembered")
	}
	if _, ok := s.Removed("a.1", maxRemoved+10, 1); !ok {
		t.Error("one of the last is not")
	}
}

// TestAlwaysOpens: whatever stands in the folder.
func TestAlwaysOpens(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a pipe for a segment": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "0000000000.seg")), unix.Mkfifo(filepath.Join(dir, "0000000000.seg"), 0o600))
		},
		"a link for a segment": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "0000000000.seg")), os.Symlink("/etc/passwd", filepath.Join(dir, "0000000000.seg")))
		},
		"a folder for a segment": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "0000000007.seg", "deeper"), 0o700)
		},
		"a pipe for an index": func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "0000000000.idx"), 0o600) },
		"a strange file":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "core"), nil, 0o600) },
		"another's segment": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "0000000009.seg"), make([]byte, 99), 0o600)
		},
		"an empty segment":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "0000000009.seg"), nil, 0o600) },
		"a huge segment":      func(dir string) error { return os.Truncate(filepath.Join(dir, "0000000000.seg"), 1<<40) },
		"a file for a folder": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"a pipe among large":  func(dir string) error { return unix.Mkfifo(filepath.Join(dir, apartFolder, "x"), 0o600) },
		"a link for large": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, apartFolder)),
				os.Symlink("/", filepath.Join(dir, apartFolder)))
		},
		"nothing is there": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configAt(filepath.Join(t.TempDir(), "outputs"))
			s := openShelf(t, cfg)
			s.put(item(1, "one", ""))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			s.reopen()
			s.put(item(2, "two", ""))
			s.reopen()
			if got := s.read(2, 0); got != "two" {
				t.Errorf("the next one: %q; put aside: %v", got, s.aside)
			}
		})
	}
}

// TestRemovedFolder: somebody removes the store, or a file of it, while it is open.
func TestRemovedFolder(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"all":       os.RemoveAll,
		"a segment": func(dir string) error { return os.Remove(filepath.Join(dir, "0000000000.seg")) },
		"large":     func(dir string) error { return os.Remove(filepath.Join(dir, apartFolder)) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configAt(filepath.Join(t.TempDir(), "outputs"))
			s := openShelf(t, cfg)
			s.put(item(1, "one", ""))
			if err := remove(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			s.put(item(2, "two", ""))
			s.reopen()
			if got := s.read(2, 0); got != "two" {
				t.Errorf("the next one: %q", got)
			}
		})
	}
}

// TestRemovalFollowsNoLink: what others have put in the place of a kept file is not
// followed, and what it names stays.
func TestRemovalFollowsNoLink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "a.1-1-1-7.stdout")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openShelf(t, configAt(t.TempDir()))
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, make([]byte, MaxInline+1), 0o600); err != nil {
		t.Fatal(err)
	}
	it := item(1, "", "")
	it.Streams[0] = Stream{Path: path, Size: MaxInline + 1}
	s.put(it)
	apart := filepath.Join(s.cfg.Dir, apartFolder)
	if err := errors.Join(os.RemoveAll(apart), os.Symlink(filepath.Dir(outside), apart)); err != nil {
		t.Fatal(err)
	}
	if got := s.read(1, 0); !strings.HasPrefix(got, "error: ") {
		t.Errorf("read %q through a link", got)
	}
	s.at(moment.Add(48 * time.Hour))
	s.Sweep()
	if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	if s.Stats().Outputs != 0 {
		t.Error("it was not removed")
	}
}

// TestDamageCostsItself: one output whose bytes have changed is told as damaged, or
// gone; the others are read, with and without their index.
func TestDamageCostsItself(t *testing.T) {
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = fractions << 14 // sixteen outputs a segment
	s := openShelf(t, cfg)
	for n := range 40 {
		s.put(item(n, fmt.Sprintf("output %02d", n), ""))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cfg.Dir, fileOf(0, segmentExt))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "output 05")
	b[at] = 'O'
	if err = os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"damaged on disk", "unknown attempt"} {
		s.reopen()
		for n := range 40 {
			got, want := s.read(n, 0), fmt.Sprintf("output %02d", n)
			if n == 5 && !strings.Contains(got, damage) || n != 5 && got != want {
				t.Errorf("task %d: %q", n, got)
			}
		}
		if err = os.Remove(filepath.Join(cfg.Dir, fileOf(0, indexExt))); err != nil {
			t.Fatal(err)
		}
	}
}
