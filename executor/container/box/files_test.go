package box

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

func attempt(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a-1-1-1")
	o := Order{
		Task:  executor.Task{ID: executor.ID{Job: "a", Task: 1, Attempt: 1, Token: 1}, Command: []string{"x"}},
		Grace: time.Second,
	}
	if err := Make(dir, o); err != nil {
		t.Fatal(err)
	}
	if back, err := ReadOrder(dir); err != nil || back.Task.ID != o.Task.ID || back.Grace != o.Grace {
		t.Fatalf("got %+v, %v", back, err)
	}
	return dir
}

// live is an Init as seen from outside: it holds the lock.
func live(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.OpenFile(Told(dir), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	return f
}

func hear(t *testing.T, dir string) Word {
	t.Helper()
	w, err := Hear(dir)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestLockIsTheProofOfLife: an end counts only once its teller is gone.
func TestLockIsTheProofOfLife(t *testing.T) {
	dir := attempt(t)
	if w := hear(t, dir); w.Alive || w.Run != nil || w.Ended != nil {
		t.Errorf("before: %+v", w)
	}
	f := live(t, dir)
	for _, l := range []line{{Run: &Begun{At: time.Now()}}, {End: &Ended{Result: executor.Result{ExitCode: 7}}}} {
		if err := writeLine(f, l); err != nil {
			t.Fatal(err)
		}
	}
	if w := hear(t, dir); !w.Alive || w.Run == nil || w.Ended.Result.ExitCode != 7 {
		t.Errorf("while it lives: %+v", w)
	}
	f.Close()
	if w := hear(t, dir); w.Alive || w.Ended == nil {
		t.Errorf("afterwards: %+v", w)
	}
}

// TestNoiseHidesNoEnd: what a task writes where its end will be told, its own end among it, comes before the last
// word.
func TestNoiseHidesNoEnd(t *testing.T) {
	for _, size := range []int{0, maxTold - 1, maxTold, maxTold + 1, 3 * maxTold} {
		dir := attempt(t)
		f := live(t, dir)
		if err := writeLine(f, line{Run: &Begun{At: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(make([]byte, size), "\n{\"end\":{\"result\":{\"ExitCode\":0}}}\n"...)); err != nil {
			t.Fatal(err)
		}
		if err := writeLine(f, line{End: &Ended{Result: executor.Result{ExitCode: 7, Run: time.Hour}}}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if w := hear(t, dir); w.Alive || w.Run == nil || w.Ended == nil || w.Ended.Result.Run != time.Hour {
			t.Errorf("%d bytes of noise: %+v", size, w)
		}
	}
}

// TestVoid: what has not begun is ended for certain, what lives or has begun is
// not touched.
func TestVoid(t *testing.T) {
	dir := attempt(t)
	f := live(t, dir)
	if done, err := Void(dir, executor.Result{}); done || err != nil {
		t.Errorf("a living one was ended: %v, %v", done, err)
	}
	f.Close()
	if done, err := Void(dir, executor.Result{Detail: "gone"}); !done || err != nil {
		t.Errorf("got %v, %v; want it ended", done, err)
	}
	if done, err := Void(dir, executor.Result{Detail: "again"}); done || err != nil {
		t.Errorf("ended twice: %v, %v", done, err)
	}
	if w := hear(t, dir); w.Ended == nil || w.Ended.Result.Detail != "gone" {
		t.Errorf("got %+v", w)
	}
}

// TestStopNeedsAnEar: without an Init nobody hears a stop, and nobody waits.
func TestStopNeedsAnEar(t *testing.T) {
	dir := attempt(t)
	if heard, err := Stop(dir, "why"); heard || err != nil {
		t.Errorf("nobody listens: %v, %v", heard, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, stops), os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if heard, err := Stop(dir, "why"); !heard || err != nil {
		t.Errorf("got %v, %v", heard, err)
	}
	buf := make([]byte, 10)
	if n, err := f.Read(buf); err != nil || string(buf[:n]) != "why\n" {
		t.Errorf("heard %q, %v", buf[:n], err)
	}
	if heard, err := Stop(filepath.Join(dir, "none"), "why"); heard || err != nil {
		t.Errorf("no folder: %v, %v", heard, err)
	}
}

// TestWritable: any user of the container can write what is mounted there, and
// nothing else of the folder.
func TestWritable(t *testing.T) {
	dir := attempt(t)
	open := append(Written(), stops, "work")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := st.Mode().Perm()&0o002 != 0, slices.Contains(open, e.Name()); got != want {
			t.Errorf("%s is %s; writable by all should be %v", e.Name(), st.Mode(), want)
		}
	}
}

// FuzzHear: whatever a task writes where its first process tells, nothing breaks
// and little is read.
func FuzzHear(f *testing.F) {
	f.Add([]byte(`{"run":{"at":"2026-01-01T00:00:00Z"}}` + "\n" + `{"end":{"result":{"ExitCode":3}}}`))
	f.Add([]byte("\n{\"end\":null}\n\x00{"))
	f.Add([]byte(`{"end":{"result":{"Cause":200,"Run":-9223372036854775808,"Detail":"\u202e"}}}`))
	f.Fuzz(func(t *testing.T, told []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(Told(dir), told, 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := Hear(dir); err != nil || w.Alive {
			t.Errorf("%+v, %v", w, err)
		}
	})
}

func TestEmpty(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	empty(dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
