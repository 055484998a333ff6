package watchdog

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// inside reports whether this process is the first of a pid namespace; if not, it has another one,
// which is, do the test.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(firstVar) != "" {
		if os.Getpid() != 1 { // all but this process would be killed
			t.Fatal("not the first process of a pid namespace")
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), firstVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	switch out, err := cmd.CombinedOutput(); {
	case err != nil && cmd.Process == nil:
		t.Logf("no pid namespace can be made here: %v", err)
	case err != nil:
		t.Fatalf("%v:\n%s", err, out)
	}
	return false
}

// fakeLink is a handler that does one thing once the task has been seen to run.
type fakeLink struct {
	w     *Watch
	begun chan struct{}
	due   func(now int64) int64
	heard func()
	bell  Bell
	child Bell // drained as a guard does, if there is one
}

func (l *fakeLink) Begun() { close(l.begun) }

func (l *fakeLink) Due(now int64) int64 {
	if l.due != nil {
		return l.due(now)
	}
	return Never
}

func (l *fakeLink) Heard(from Source) {
	if l.heard != nil {
		l.heard()
	}
	if from&FromChild != 0 && l.w.Bells {
		l.child.Drain()
	}
	if from&FromHandler != 0 && l.bell.Drain() {
		l.w.Stop("enough")
	}
}

func (l *fakeLink) Ended(*End) {}

// watched returns the watchdog of a script that has not begun.
func watched(t *testing.T, script string) (*Watch, *fakeLink) {
	t.Helper()
	s, err := NewSources()
	if err != nil {
		t.Fatal(err)
	}
	l := &fakeLink{begun: make(chan struct{})}
	if l.bell, err = s.Bell(FromHandler); err != nil {
		t.Fatal(err)
	}
	l.w = &Watch{
		Task:  executor.Task{Command: []string{"sh", "-c", script}},
		Grace: 50 * time.Millisecond, Fence: new(atomic.Int64), Link: l, Sources: s,
	}
	return l.w, l
}

// run runs it, and checks that nothing is left.
func run(t *testing.T, w *Watch) executor.Result {
	t.Helper()
	r := w.Run(func() error {
		return w.ForkInside(&Process{File: "/bin/sh", Out: [2]uintptr{1, 2}}, 0, func() error { return nil })
	})
	if err := unix.Kill(-1, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("something is left: %v", err)
	}
	return r
}

// stubborn is deaf to TERM, as its watchdog has it, and has a child that left its session.
const stubborn = "setsid sleep 1000 & while :; do sleep 1000; done"

// TestWatch: each way in which an attempt ends; nothing of it is left, and the reason is told.
func TestWatch(t *testing.T) {
	if !inside(t) {
		return
	}
	signal.Ignore(syscall.SIGTERM) // which tasks inherit
	for name, c := range map[string]struct {
		script  string
		prepare func(*Watch, *fakeLink)
		cause   executor.Cause
		code    int
		detail  string
	}{
		"by itself": {"setsid sleep 1000 & exit 3", nil, executor.Exited, 3, "exited with code 3"},
		"timeout": {stubborn, func(w *Watch, _ *fakeLink) {
			w.Task.Timeout = 10 * time.Millisecond
		}, executor.TimedOut, 137, "over its timeout"},
		"stop": {stubborn, func(_ *Watch, l *fakeLink) {
			go func() {
				<-l.begun
				l.bell.Ring()
			}()
		}, executor.Stopped, 137, "stopped: enough"},
		"bound": {stubborn, func(w *Watch, l *fakeLink) {
			l.due = func(now int64) int64 {
				if w.GoneOver("over its scratch"); now > w.Began {
					return Never
				}
				return now
			}
		}, executor.Exited, 137, "killed: over its scratch"},
		"late": {"exit 3", func(w *Watch, _ *fakeLink) {
			w.Task.Fence = executor.Boottime()
		}, executor.Fenced, 0, "not started"},
		"unwatchable": {stubborn, func(w *Watch, _ *fakeLink) {
			w.Sources.set.Close()
		}, executor.Stopped, 137, "its watchdog cannot go on"},
	} {
		w, l := watched(t, c.script)
		if c.prepare != nil {
			c.prepare(w, l)
		}
		if r := run(t, w); r.Cause != c.cause || r.ExitCode != c.code || !strings.Contains(r.Detail, c.detail) {
			t.Errorf("%s: ended by %v: %+v", name, r.Cause, r)
		}
	}
}

// TestWatchFollowsTheFence: what counts is where the shared fence is at each look.
func TestWatchFollowsTheFence(t *testing.T) {
	if !inside(t) {
		return
	}
	w, l := watched(t, "exec sleep 1000")
	shared := new(atomic.Int64)
	shared.Store(executor.Boottime() + int64(time.Minute))
	w.Task.Fence, w.Fence = 1, shared
	looks := 0
	l.due = func(now int64) int64 {
		if looks++; looks == 3 {
			shared.Store(now)
		}
		return now
	}
	if r := run(t, w); r.Cause != executor.Fenced || looks < 3 {
		t.Errorf("ended at look %d: %+v", looks, r)
	}
}

// TestChildEndsAfterTheWait: the clock wakes the loop, and the child's bell rings before the link hears of that: a
// guard drained it, and never heard of its task's end.
func TestChildEndsAfterTheWait(t *testing.T) {
	if !inside(t) {
		return
	}
	w, l := watched(t, "exit 3")
	w.Bells, w.Task.Timeout = true, 20*time.Second
	var err error
	if l.child, err = w.Sources.Bell(FromChild); err != nil {
		t.Fatal(err)
	}
	looks, rung := 0, false
	l.due = func(now int64) int64 {
		if looks++; looks == 1 {
			return now
		}
		return Never
	}
	l.heard = func() {
		if rung {
			return
		}
		rung = true
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, w.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Error(err)
		}
		l.child.Ring()
	}
	if r := run(t, w); r.Cause != executor.Exited || r.ExitCode != 3 {
		t.Errorf("got %+v", r)
	}
}
