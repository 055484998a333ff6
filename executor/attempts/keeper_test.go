package attempts

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// ended runs an attempt that has written something, and forgets it.
func (s *shelf) ended(n uint32, text string) executor.Task {
	s.Helper()
	task := numbered(n)
	if err := s.start(s.Context(), task, func(*record) error { return nil }); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(s.file(task), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.end(task, &End{At: time.Now(), Out: [2]int64{int64(len(text))}})
	if err := s.Forget(task.ID, func(*record) error { return nil }); err != nil {
		s.Fatal(err)
	}
	return task
}

func (s *shelf) file(t executor.Task) string { return filepath.Join(s.dir, t.ID.String()+".stdout") }

// read is a handler's Logs.
func (s *shelf) read(t executor.Task) (string, error) {
	r, err := s.Logs(s.Context(), t.ID, "stdout", func(w *record, n int) (io.ReadCloser, error) {
		f, err := outputs.OpenRegular(s.file(w.Task), os.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) {
			return nil, executor.ErrUnknownAttempt
		}
		if err != nil {
			return nil, err
		}
		return s.Read(s.Context(), w, n, f, 1<<20, nil)
	})
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// TestOutputMovesWhileItIsRead: at each moment of its way into the store an output is
// read whole and once, by who has it open, too.
func TestOutputMovesWhileItIsRead(t *testing.T) {
	s := newShelf(t).adopt()
	for n := range uint32(20) {
		task := s.ended(n, "mine")
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			s.KeepNow()
			_ = os.Remove(s.file(task)) // the handler's part of Drop
		}()
		for going := true; going; {
			select {
			case <-moved:
				going = false
			default:
			}
			if got, err := s.read(task); err != nil || got != "mine" {
				t.Fatalf("read %q, %v", got, err)
			}
		}
	}
	if s.dropped != 20 {
		t.Errorf("%d of 20 have moved", s.dropped)
	}
}

// TestWhatCannotBeKeptIsTold: a pipe, a link or nothing in the place of an output does
// not hang anybody, and the answer says what it was.
func TestWhatCannotBeKeptIsTold(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"pipe":    func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":    func(path string) error { return os.Symlink("/etc/passwd", path) },
		"nothing": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t).adopt()
			task := s.ended(1, "mine")
			path := s.file(task)
			if err := errors.Join(os.Remove(path), spoil(path)); err != nil {
				t.Fatal(err)
			}
			s.KeepNow()
			_ = os.Remove(path)
			if got, err := s.read(task); !errors.Is(err, executor.ErrUnknownAttempt) ||
				!strings.Contains(err.Error(), "could not be kept") {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

// TestBusyAttemptsAreDroppedLater, and are put into the store once.
func TestBusyAttemptsAreDroppedLater(t *testing.T) {
	s := newShelf(t).adopt()
	s.busy = true
	s.ended(1, "mine")
	s.KeepNow()
	s.KeepNow()
	s.busy = false
	s.KeepNow()
	s.KeepNow()
	if s.dropped != 3 || s.store.Stats().Outputs != 1 {
		t.Errorf("asked %d times, %+v", s.dropped, s.store.Stats())
	}
}

// TestStoreRefuses: outputs stay where they are, and can be read.
func TestStoreRefuses(t *testing.T) {
	s := newShelf(t).adopt()
	task := s.ended(1, "mine")
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	s.KeepNow()
	if got, err := s.read(task); err != nil || got != "mine" || s.dropped != 0 {
		t.Errorf("read %q, %v; dropped %d", got, err, s.dropped)
	}
}

// countedStore counts the questions for what has become of outputs.
type countedStore struct {
	outputStore
	asked int
}

func (s *countedStore) FateOf(id executor.ID) (outputs.Fate, error) {
	s.asked++
	return s.outputStore.FateOf(id)
}

// TestStoreIsAskedOnce for what has become of an attempt of a previous run, whatever the
// answer is; of a new one not at all. It was asked up to three times.
func TestStoreIsAskedOnce(t *testing.T) {
	s := newShelf(t)
	kept := s.forgotten(1, End{At: time.Now(), Out: [2]int64{4, 0}})
	if err := os.WriteFile(s.file(kept), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.KeepNow()
	if err := os.Remove(s.file(kept)); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(-time.Hour)
	s.forgotten(1, End{At: time.Now(), Out: [2]int64{4, 0}}) // a crash came before it was dropped
	s.forgotten(2, End{At: hour, Out: [2]int64{4, 0}})       // its file went with its output
	s.keeper.keeping.Lock()
	counted := &countedStore{outputStore: s.keeper.store}
	s.keeper.store = counted
	s.keeper.keeping.Unlock()
	s.adopt()
	s.KeepNow()
	if counted.asked != 2 {
		t.Errorf("asked %d times about 2 attempts", counted.asked)
	}
	s.ended(3, "mine")
	s.KeepNow()
	if counted.asked != 2 || s.store.Stats().Outputs != 2 {
		t.Errorf("asked %d times after one more; %+v", counted.asked, s.store.Stats())
	}
}

// TestOneLineForAllThatWaits: where nothing can be read (no descriptors, say), the log has a
// line for all attempts that wait, not one for each.
func TestOneLineForAllThatWaits(t *testing.T) {
	s := newShelf(t).adopt()
	for n := range uint32(3) {
		s.ended(n, "mine")
	}
	var log strings.Builder
	s.keeper.keeping.Lock()
	s.keeper.log = zerolog.New(&log)
	// too long a name
	s.keeper.shelf.Output = func(Kept, int) string { return filepath.Join(s.dir, strings.Repeat("x", 300)) }
	s.keeper.keeping.Unlock()
	s.KeepNow()
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `"attempts":3`) {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
