//go:build container

package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// containers returns how many the engine has, running or not.
func containers(t testing.TB, e *engines.Engine) int {
	t.Helper()
	b, err := e.Call(t.Context(), "GET", "/v1.41/containers/json?all=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), `"ImageID"`)
}

// awaitNone waits until the engine has no container any more.
func awaitNone(t testing.TB, e *engines.Engine) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); containers(t, e) > 0; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d containers are left", containers(t, e))
		}
	}
}

// TestEngineAway: while the engine is dead, what runs goes on, ends, is stopped
// and is held to its fence as ever; nothing is offered. When it is back, all is
// caught up.
func TestEngineAway(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker, engines.Flags("--live-restore"))
	cfg := config(t, e)
	cfg.Cores = 4
	r := open(t, cfg)
	ends := r.Begin(r.shell("sleep 3; echo done; exit 5"))
	stopped := r.Begin(r.shell("echo up; sleep 1000"))
	goesOn := r.Begin(r.shell("sleep 1000"))
	foreign := r.shell("sleep 1000")
	foreign.Fence = executor.Boottime() + int64(15*time.Second)
	fenced := r.Begin(foreign)
	for _, id := range []executor.ID{ends, stopped, goesOn, fenced} {
		r.AwaitRunning(id)
	}
	r.Must(e.Signal(syscall.SIGKILL))
	r.capacity(false)
	if err := r.Start(t.Context(), r.shell("true")); !errors.Is(err, executor.ErrBusy) || !strings.Contains(err.Error(), "engine") {
		t.Errorf("started without an engine: %v", err)
	}
	r.Must(r.Stop(t.Context(), stopped, "no longer wanted"))
	if res := r.AwaitEnd(stopped); res.Cause != executor.Stopped {
		t.Errorf("got %+v, want it stopped", res)
	}
	if res := r.AwaitEnd(ends); res.ExitCode != 5 || r.Written(ends, "stdout") != "done\n" {
		t.Errorf("got %+v and %q", res, r.Written(ends, "stdout"))
	}
	if res := r.AwaitEnd(fenced); res.Cause != executor.Fenced || executor.Boottime() > foreign.Fence {
		t.Errorf("got %+v at %d, want Fenced before %d", res, executor.Boottime(), foreign.Fence)
	}
	r.Must(r.Close())
	states := r.Open() // without an engine, too
	if len(states) != 4 || len(r.Capacity()) != 0 {
		t.Errorf("adopted %d without an engine, want all 4: %+v", len(states), states)
	}
	r.Must(e.Run(t.Context()))
	r.capacity(true)
	if got := r.said("echo back"); got != "back" {
		t.Errorf("got %q", got)
	}
	r.Must(r.Stop(t.Context(), goesOn, "test"))
	if res := r.AwaitEnd(goesOn); res.Cause != executor.Stopped {
		t.Errorf("got %+v, want what ran through all of it stopped", res)
	}
	awaitNone(t, e)
}

// TestFolderRemoved: nothing can be heard of an attempt whose folder is gone; it
// is ended for certain before it is told lost.
func TestFolderRemoved(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	r := open(t, config(t, e))
	id := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(id)
	r.Must(os.RemoveAll(filepath.Join(r.cfg.Dir, "attempts", id.String())))
	r.Must(r.Stop(t.Context(), id, "test"))
	if res := r.AwaitEnd(id); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "folder") {
		t.Errorf("got %+v", res)
	}
	if n := containers(t, e); n > 0 {
		t.Errorf("told lost while %d containers are there", n)
	}
}

// TestEngineHangs: a start is not waited for long, and nothing is offered until
// the engine answers again.
func TestEngineHangs(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	r := open(t, config(t, e))
	r.Must(e.Signal(syscall.SIGSTOP))
	if err := r.Start(t.Context(), r.shell("true")); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	r.capacity(false)
	r.Must(e.Signal(syscall.SIGCONT))
	r.capacity(true)
	if got := r.said("echo back"); got != "back" {
		t.Errorf("got %q", got)
	}
}

// TestEngineStops: an engine that is told to stop ends its containers; that is
// no failure of theirs.
func TestEngineStops(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	r := open(t, config(t, e))
	id := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(id)
	r.Must(e.Signal(syscall.SIGTERM))
	if res := r.AwaitEnd(id); res.Cause != executor.Stopped && res.Cause != executor.Vanished {
		t.Errorf("got %+v, want a loss", res)
	}
	r.Must(e.Run(t.Context()))
	r.capacity(true)
	awaitNone(t, e)
}

// TestFromOutside: containers that others end, remove or pause.
func TestFromOutside(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	r := open(t, config(t, e))
	act := func(id executor.ID, method, verb string) {
		t.Helper()
		b, err := e.Call(t.Context(), "GET", `/v1.41/containers/json?filters={"label":["cloudshare.name=`+id.String()+`"]}`, nil)
		r.Must(err)
		_, rest, _ := strings.Cut(string(b), `"Id":"`)
		_, err = e.Call(t.Context(), method, "/v1.41/containers/"+rest[:64]+verb, nil)
		r.Must(err)
	}
	removed := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(removed)
	act(removed, "DELETE", "?force=1")
	if res := r.AwaitEnd(removed); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "gone") &&
		!strings.Contains(res.Detail, "outside") {
		t.Errorf("removed: got %+v", res)
	}
	stopped := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(stopped)
	act(stopped, "POST", "/stop?t=10") // its first process heeds the engine no more than its task
	if res := r.AwaitEnd(stopped); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "ended from outside") {
		t.Errorf("stopped: got %+v", res)
	}
	paused := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(paused)
	act(paused, "POST", "/pause")
	r.Must(r.Stop(t.Context(), paused, "no longer wanted"))
	if res := r.AwaitEnd(paused); res.Cause != executor.Stopped || !strings.Contains(res.Detail, "no longer wanted") {
		t.Errorf("paused: got %+v", res)
	}
	awaitNone(t, e)
}
