package books

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
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
		f, err := OpenRegular(s.file(w.Task), os.O_RDONLY)
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
			if got, err := s.read(task); !errors.Is(err, executor.ErrUnknownAttempt) || !strings.Contains(err.Error(), "could not be kept") {
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
