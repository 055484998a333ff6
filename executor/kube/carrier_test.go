package kube

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
)

// filed is an attempt that runs and is to leave files.
func (h Watched) filed(t *testing.T, n uint32) *work {
	t.Helper()
	w := h.attempt(t, n)
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	w.Task.Outputs, w.carried, w.began = executor.Outputs{Paths: []string{"a"}, MaxBytes: 100}, true, time.Now()
	return w
}

const stream = `{"file":{"Path":"a","Size":4}}` + "\nleft" + `{"end":true}` + "\n"

// breaks is a connection that is cut behind its text.
func breaks(text string) io.Reader { return io.MultiReader(strings.NewReader(text), cutOff{}) }

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// gathered keeps names and contents.
type gathered struct{ got string }

func (s *gathered) File(f executor.OutputFile, r io.Reader) error {
	b, err := io.ReadAll(r)
	s.got += f.Path + "=" + string(b)
	return err
}

func (s *gathered) Skipped(string, string) {}

// clean ends an attempt as its watchdog tells a clean end.
func (h Watched) clean(t *testing.T, w *work) executor.Result {
	t.Helper()
	err := h.finisher.endAttempt(w, executor.Result{Started: w.began, Run: time.Second}, [2]int64{})
	if err != nil || w.Ended == nil {
		t.Fatalf("got %v, %+v", err, w.Ended)
	}
	return w.Ended.Result
}

// TestReceived: what a pod sends is taken from where it was cut, of one life of it, and given until it is forgotten.
func TestReceived(t *testing.T) {
	h := guarded(t, good(t))
	w, c := h.filed(t, 1), h.leases.carrier
	receive := func(run string, from int64, in io.Reader) (carry.State, error) {
		return c.Receive(context.Background(), w.Name, run, from, in)
	}
	if _, err := receive("r", 0, breaks(stream[:20])); err == nil {
		t.Error("what was cut is taken for whole")
	}
	for run, want := range map[string]int64{"r": 20, "other": 0} {
		if st, err := c.Sent(w.Name, run); err != nil || st != (carry.State{Have: want}) {
			t.Errorf("%s: has %+v, %v", run, st, err)
		}
	}
	if _, err := receive("r", 10, strings.NewReader(stream[10:])); !errors.Is(err, errElsewhere) {
		t.Errorf("from elsewhere: %v", err)
	}
	if _, err := receive("other", 20, strings.NewReader(stream[20:])); !errors.Is(err, errElsewhere) {
		t.Errorf("another life: %v", err)
	}
	if st, err := receive("r", 20, strings.NewReader(stream[20:])); err != nil || !st.Whole {
		t.Errorf("the rest: %+v, %v", st, err)
	}
	if _, err := receive("r", 0, strings.NewReader(stream)); !errors.Is(err, errElsewhere) {
		t.Errorf("once more: %v", err)
	}
	if r := h.clean(t, w); r.Cause != executor.Exited {
		t.Errorf("got %+v", r)
	}
	if _, err := c.Sent(w.Name, "r"); !errors.Is(err, carry.ErrGone) {
		t.Errorf("after its end: %v", err)
	}
	var s gathered
	if err := h.Collect(t.Context(), w.Task.ID, w.Task.Outputs, &s); err != nil || s.got != "a=left" {
		t.Errorf("got %q, %v", s.got, err)
	}
	if err := h.Forget(t.Context(), w.Task.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.Collect(t.Context(), w.Task.ID, w.Task.Outputs, &s); !errors.Is(err, executor.ErrUnknownAttempt) {
		t.Errorf("forgotten: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, leftFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files stay: %v", err)
	}
}

// TestNotReceived: more than is allowed, or no files, is refused and removed.
func TestNotReceived(t *testing.T) {
	h := guarded(t, good(t))
	w, c := h.filed(t, 1), h.leases.carrier
	for name, text := range map[string]string{
		"garbage": "garbage\n", "no end": stream[:40],
		"too much": `{"file":{"Path":"a","Size":101}}` + "\n" + strings.Repeat("x", 101) + `{"end":true}` + "\n",
	} {
		if _, err := c.Receive(t.Context(), w.Name, "r", 0, strings.NewReader(text)); !errors.Is(err, carry.ErrGarbled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(w.dir, partFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s stays: %v", name, err)
		}
	}
	for _, name := range []string{h.attempt(t, 2).Name, "site-1.7-9-9-9"} {
		if _, err := c.Receive(t.Context(), name, "r", 0, strings.NewReader(stream)); !errors.Is(err, carry.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "f")
	if size, err := appendFrom(path, 0, strings.NewReader(strings.Repeat("x", 50)), 9); err != nil || size != 10 {
		t.Errorf("beyond its bound: %d bytes, %v", size, err)
	}
}

// TestLostWithItsFiles: a task whose files did not come has not succeeded, and may run again; one that was killed
// together with its watchdog has failed.
func TestLostWithItsFiles(t *testing.T) {
	h := guarded(t, good(t))
	w := h.filed(t, 1)
	w.told, w.unsent = true, "nobody answers"
	if r := h.clean(t, w); r.Cause != executor.Stopped || !strings.Contains(r.Detail, "nobody answers") || r.Started.IsZero() {
		t.Errorf("got %+v, want a loss", r)
	}
	for name, c := range map[string]struct {
		r    executor.Result
		lost bool
	}{
		"timeout": {executor.Result{Cause: executor.TimedOut, Started: time.Now()}, true},
		"failed":  {executor.Result{ExitCode: 1, Started: time.Now()}, true},
		"stopped": {executor.Result{Cause: executor.Stopped, Detail: "stopped: x", Started: time.Now()}, false},
		"fenced":  {executor.Result{Cause: executor.Fenced, Started: time.Now()}, false},
		"refused": {executor.Result{Cause: executor.NoStart}, false},
	} {
		if got := w.withFiles(c.r); strings.HasPrefix(got.Detail, "lost") != c.lost || !c.lost && got != c.r {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	w.told = false
	if r := (executor.Result{ExitCode: 137, Signal: 9, Started: time.Now()}); w.withFiles(r) != r {
		t.Errorf("got %+v: its own fault", w.withFiles(r))
	}
}

// TestFilesCome: those of an attempt are read again by the next life of the broker, and count to its time.
func TestFilesCome(t *testing.T) {
	h := guarded(t, good(t))
	w, c := h.attempt(t, 1), h.leases.carrier
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("four"), 0o400); err != nil {
		t.Fatal(err)
	}
	w.carried, w.files = true, 2
	w.Task.Files = []executor.File{{Path: "in", Source: source}, {Path: "text", Content: []byte("content"), Executable: true}}
	if err := h.starter.writeFiles(w); err != nil || w.in != 11 {
		t.Fatalf("%d bytes, %v", w.in, err)
	}
	w.Task.Files = nil
	l, err := c.Files(w.Name)
	if err != nil || len(l) != 2 || l[0].Source != source || l[0].Size != 4 || string(l[1].Content) != "content" ||
		!l[1].Executable {
		t.Errorf("got %+v, %v", l, err)
	}
	w.since = time.Now().Add(-h.cfg.StartLimit)
	if h.reconciler.decide(w, nil); w.kill != nil {
		t.Errorf("its files have no time to come: %+v", w.kill)
	}
	w.since = w.since.Add(-w.fetching())
	if h.reconciler.decide(w, nil); w.kill == nil {
		t.Error("they have all time to come")
	}
	absent := h.attempt(t, 2)
	absent.carried, absent.files, absent.Task.Files = true, 1, []executor.File{{Path: "in", Source: source + "-none"}}
	if err = h.starter.writeFiles(absent); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("a file that the broker has not: %v", err)
	}
	if _, err = c.Files(h.attempt(t, 3).Name); !errors.Is(err, carry.ErrGone) {
		t.Errorf("of a task without files: %v", err)
	}
}

// TestFilesFit: without a watchdog none travel, and none to elsewhere than the work folder.
func TestFilesFit(t *testing.T) {
	file := []executor.File{{Path: "a"}}
	h, none := guarded(t, good(t)), bare(t, Config{})
	for name, c := range map[string]struct {
		l    *leases
		task executor.Task
		want string
	}{
		"no files":    {none.leases, executor.Task{}, ""},
		"no watchdog": {none.leases, executor.Task{Files: file, Command: []string{"x"}}, "name kube.watchdog"},
		"outputs":     {none.leases, executor.Task{Outputs: executor.Outputs{Paths: []string{"a"}}}, "name kube.watchdog"},
		"no command":  {h.leases, executor.Task{Files: file}, "give the job a command"},
		"absolute":    {h.leases, executor.Task{Files: []executor.File{{Path: "/a"}}, Command: []string{"x"}}, "absolute"},
		"good":        {h.leases, executor.Task{Files: file, Command: []string{"x"}}, ""},
	} {
		err := c.l.fitFiles(c.task)
		refused := errors.Is(err, executor.ErrUnfit) && strings.Contains(err.Error(), c.want)
		if c.want == "" && err != nil || c.want != "" && !refused {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	w := executor.Task{Timeout: time.Hour, Outputs: executor.Outputs{Paths: []string{"a"}, MaxBytes: 600 << 20}}
	plain, ok := none.specs.bound(&executor.Task{Timeout: time.Hour}, 0)
	if with, wok := none.specs.bound(&w, time.Minute); !ok || !wok || with != plain+2*time.Minute+3*20*time.Minute {
		t.Errorf("bound %s, with files %s", plain, with)
	}
	if d := travel(baseSend, 1<<60); d != longest {
		t.Errorf("a huge file may take %s", d)
	}
}
