package attempts

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

type record struct{ Attempt }

// shelf has the attempts of a handler that runs nothing.
type shelf struct {
	*testing.T
	mu sync.Mutex
	*Set[*record]
	released, dropped int
	busy              bool // nothing can be dropped
	dir               string
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{T: t}
	dir := t.TempDir()
	var err error
	s.Set, err = NewSet[*record](&s.mu, Keeping{Dir: dir}, func(Hold) { s.released++ }, Shelf{
		Output: func(k Kept, stream int) string { return filepath.Join(dir, k.Name+"."+Streams[stream]) },
		Drop: func(k Kept) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dropped++
			s.Drop(k.Name)
			return !s.busy
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(s.Set.Close)
	return s
}

func (s *shelf) adopt() *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.Adopted(); err != nil {
		s.Fatal(err)
	}
	return s
}

func numbered(n uint32) executor.Task {
	return executor.Task{ID: executor.ID{Job: "a.1", Task: n, Attempt: 1, Token: 7}}
}

func (s *shelf) start(ctx context.Context, t executor.Task, begin func(*record) error) error {
	return s.Start(ctx, t, func() (*record, error) { return &record{NewAttempt(t)}, nil }, begin)
}

// TestRepeatedStart: a repeat gets the first one's answer and begins nothing; what
// could not begin is not known, and may be tried again.
func TestRepeatedStart(t *testing.T) {
	s := newShelf(t).adopt()
	refusal := errors.New("refused")
	asked, answer := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.start(t.Context(), numbered(1), func(*record) error {
			close(asked)
			<-answer
			return refusal
		})
	}()
	<-asked
	never := func(*record) error { t.Error("a repeat began"); return nil }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.start(gone, numbered(1), never); !errors.Is(err, context.Canceled) {
		t.Errorf("a repeat that nobody waits for: %v", err)
	}
	second := make(chan error, 1)
	known := s.known(numbered(1))
	go func() { second <- s.start(t.Context(), numbered(1), func(*record) error { return refusal }) }()
	close(answer)
	if err := <-first; !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	if err := <-second; !errors.Is(err, refusal) { // as a repeat, or again
		t.Errorf("the repeat got %v", err)
	}
	<-known.Accepted()
	if s.known(numbered(1)) != nil || s.released == 0 {
		t.Errorf("what was refused is known, or its room was not given back (%d)", s.released)
	}
}

func (s *shelf) known(t executor.Task) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Get(t.ID.String())
}

func (s *shelf) end(t executor.Task, e *End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Settle(s.Get(t.ID.String()), e)
}

// TestLifeOfAnAttempt: from its start until retention drops it, and what is refused
// on the way.
func TestLifeOfAnAttempt(t *testing.T) {
	s := newShelf(t)
	begin, note := func(*record) error { return nil }, func(*record) error { return nil }
	task := numbered(1)
	if err := s.start(t.Context(), task, begin); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("before Adopt: %v", err)
	}
	s.adopt()
	if err := s.start(t.Context(), task, begin); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(task.ID, note); !errors.Is(err, ErrRunning) {
		t.Errorf("forget while it runs: %v", err)
	}
	s.end(task, &End{Result: executor.Result{ExitCode: 3}, At: time.Now()})
	s.end(task, &End{Result: executor.Result{ExitCode: 4}, At: time.Now()})
	if e := <-s.Events.Out(); e.Ended == nil || e.Ended.ExitCode != 3 || s.released != 1 {
		t.Errorf("told %+v, room given back %d times", e, s.released)
	}
	if err := s.Stop(t.Context(), task.ID, func(*record) error { t.Error("stopped what has ended"); return nil }); err != nil {
		t.Error(err)
	}
	if err := s.Forget(task.ID, note); err != nil {
		t.Error(err)
	}
	for range 2 { // by the handler, then by the store of outputs
		if id, err := s.Find("a.1", 1, 1); err != nil || id != task.ID {
			t.Errorf("found %v, %v", id, err)
		}
		if err := s.start(t.Context(), task, begin); !errors.Is(err, executor.ErrUnknownAttempt) {
			t.Errorf("again: %v", err)
		}
		s.KeepNow()
	}
	if s.known(task) != nil {
		t.Error("it is still in memory")
	}
	if states, err := s.states(); err != nil || len(states) != 0 {
		t.Errorf("still told: %v, %v", states, err)
	}
	if err := s.Forget(numbered(9).ID, note); !errors.Is(err, executor.ErrUnknownAttempt) {
		t.Errorf("forget of nothing: %v", err)
	}
	s.mu.Lock()
	first, again := s.Shut(), s.Shut()
	s.mu.Unlock()
	if !first || again {
		t.Errorf("shut %v, then %v", first, again)
	}
	if err := s.start(t.Context(), numbered(2), begin); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func (s *shelf) states() ([]executor.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Adopted()
}

// TestReadStopsAtTheEnd: at most the limit while it runs, and at most what its end
// says afterwards.
func TestReadStopsAtTheEnd(t *testing.T) {
	s := newShelf(t).adopt()
	task := numbered(1)
	if err := s.start(t.Context(), task, func(*record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.output(t.Context(), task.ID, "stdin"); !errors.Is(err, errNoStream) {
		t.Errorf("no such stream: %v", err)
	}
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		w, n, err := s.output(t.Context(), task.ID, "stdout")
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Read(t.Context(), w, n, f, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if got := read(); got != "01234567" {
		t.Errorf("while it runs: %q", got)
	}
	s.end(task, &End{Out: [2]int64{4}, At: time.Now()})
	if got := read(); got != "0123" {
		t.Errorf("afterwards: %q", got)
	}
}
