package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// unwarmed has no supervisor but those that its attempts need, so that a test
// knows which one comes next.
func unwarmed(t *testing.T) (*opened, *lines) {
	log := new(lines)
	return unwarmedIn(t, logged(t, log)), log
}

// logged is a configuration whose log can be looked at.
func logged(t *testing.T, log *lines) Config {
	cfg := config(t)
	cfg.Logger = zerolog.New(log)
	return cfg
}

func unwarmedIn(t *testing.T, cfg Config) *opened {
	o := open(t, cfg)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.attempts.Adopted(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRemovedFolders: what is removed from under a handler is made again; no task
// pays for it, and the log says which folder it was.
func TestRemovedFolders(t *testing.T) {
	for name, remove := range map[string]func(o *opened, s *slot) string{
		"all slots": func(o *opened, _ *slot) string { return filepath.Join(o.cfg.Dir, "slots") },
		"the slot":  func(_ *opened, s *slot) string { return s.dir },
		"its work":  func(_ *opened, s *slot) string { return filepath.Join(s.dir, "work") },
		"its notes": func(_ *opened, s *slot) string { return filepath.Join(s.dir, "journal") },
		"all":       func(o *opened, _ *slot) string { return o.cfg.Dir },
	} {
		t.Run(name, func(t *testing.T) {
			o, log := unwarmed(t)
			first := shell(1, "echo one")
			if r := o.run(first); r.Cause != executor.Exited || r.ExitCode != 0 {
				t.Fatalf("the first: %+v", r)
			}
			old := o.slotOf(first)
			gone := remove(o, old)
			err := os.RemoveAll(gone)
			for range 1000 { // the supervisor makes its next files meanwhile
				if err == nil {
					break
				}
				err = os.RemoveAll(gone)
			}
			if err != nil {
				t.Fatal(err)
			}
			second := shell(2, "echo hi; pwd")
			r := o.run(second)
			if r.Cause != executor.Exited || r.ExitCode != 0 || !strings.HasPrefix(o.output(second), "hi\n"+o.cfg.Dir) {
				t.Errorf("after the removal: %+v, printed %q", r, o.output(second))
			}
			// The supervisor may have ended by itself: then the log names only what is made again.
			if o.slotOf(second) == old || !strings.Contains(log.String(), gone) {
				t.Errorf("the old slot serves on, or nothing is said: %s", log)
			}
			for _, task := range []executor.Task{first, second} {
				if err := o.Forget(t.Context(), task.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRemovedWhileHandedOver: a supervisor that finds its folder gone in the
// last moment starts nothing, and says that it was not the task.
func TestRemovedWhileHandedOver(t *testing.T) {
	o, _ := unwarmed(t)
	first, second := shell(1, "true"), shell(2, "echo hi")
	o.run(first)
	s := o.slotOf(first)
	if err := unix.Kill(s.pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	o.begin(second)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(s.pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := o.end(second); r.Cause != executor.Declined || !strings.Contains(r.Detail, "not started, by its site's trouble: "+s.dir) {
		t.Errorf("%+v", r)
	}
	if r := o.run(shell(3, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("the next one: %+v", r)
	}
}

// TestRemovedWhileItRuns: the attempt goes on, and so does its output.
func TestRemovedWhileItRuns(t *testing.T) {
	o, _ := unwarmed(t)
	fifo := filepath.Join(o.cfg.Dir, "go")
	task := shell(1, "echo one; read x < "+fifo+"; echo two")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	o.begin(task)
	if line := o.firstLine(task); line != "one" {
		t.Fatalf("printed %q", line)
	}
	for _, dir := range []string{"slots", "logs"} {
		if err := os.RemoveAll(filepath.Join(o.cfg.Dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(fifo, []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	if r := o.end(task); r.Cause != executor.Exited || r.ExitCode != 0 || o.output(task) != "one\ntwo\n" {
		t.Errorf("%+v, printed %q", r, o.output(task))
	}
}
