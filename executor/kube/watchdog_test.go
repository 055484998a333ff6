package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
)

// guarded is a handler with a watchdog, whose cluster does not answer.
func guarded(t *testing.T, cfg Config) Watched {
	t.Helper()
	cfg.Watchdog = Watchdog{Image: "cloudshare:1", Listen: "127.0.0.1:0", URL: "http://127.0.0.1:7703"}
	h, err := OpenWatched(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// leased is an attempt under a watchdog whose own fence is that far away.
func (h Watched) leased(t *testing.T, n uint32, fence time.Duration) *work {
	t.Helper()
	w := h.attempt(t, n)
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	w.watched, w.fence = true, executor.Boottime()+int64(fence)
	w.Task.Fence = w.fence
	return w
}

func (h Watched) ask(w *work, run string) guard.Answer {
	return h.leases.answer(guard.Question{Attempt: w.Name, Run: run, Nonce: "n"})
}

// TestLeave: how long a task may live is what its fence, or the site's, leaves; one
// life of its container gets leave, and none that is over.
func TestLeave(t *testing.T) {
	h := guarded(t, good(t))
	w := h.leased(t, 1, 10*time.Second)
	if a := h.ask(w, "a"); a.End || a.Left < 9*time.Second || a.Left > 10*time.Second {
		t.Errorf("got %+v", a)
	}
	if a := h.ask(w, "b"); !a.End {
		t.Errorf("a second life: got %+v", a)
	}
	if err := h.Extend(executor.Boottime() + int64(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if a := h.ask(w, "a"); a.End || a.Left != guard.MaxLeft {
		t.Errorf("extended: got %+v", a)
	}
	w.kill = &kill{cause: executor.Stopped}
	if a := h.ask(w, "a"); !a.End {
		t.Errorf("stopped: got %+v", a)
	}
	other := h.attempt(t, 2)
	if a := h.ask(other, "a"); !a.End {
		t.Errorf("without a watchdog: got %+v", a)
	}
	if a := h.leases.answer(guard.Question{Attempt: "site-1.7-9-9-9", Run: "a", Nonce: "n"}); !a.End {
		t.Errorf("unknown: got %+v", a)
	}
}

// TestNoLeaveAtTheEnd: what has hardly any time left waits, since it may be extended;
// what runs is told the truth.
func TestNoLeaveAtTheEnd(t *testing.T) {
	h := guarded(t, good(t))
	w := h.leased(t, 1, 2*time.Second)
	if a := h.ask(w, "a"); a != (guard.Answer{}) || w.run != "" {
		t.Errorf("got %+v", a)
	}
	w.run = "a"
	if a := h.ask(w, "a"); a.End || a.Left <= 0 {
		t.Errorf("got %+v", a)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	other := h.leased(t, 2, time.Minute)
	if err := os.RemoveAll(other.dir); err != nil {
		t.Fatal(err)
	}
	if a := h.ask(other, "a"); a != (guard.Answer{}) || other.run != "" {
		t.Errorf("its start cannot be noted: got %+v", a)
	}
}

// TestLapsedForGood: an attempt whose fence has passed is never given leave again,
// though the site gets a new lease: its task may run elsewhere by now.
func TestLapsedForGood(t *testing.T) {
	h := guarded(t, good(t))
	asked, silent := h.leased(t, 1, -1), h.leased(t, 2, -1)
	if a := h.ask(asked, "a"); !a.End {
		t.Errorf("got %+v", a)
	}
	if err := h.Extend(executor.Boottime() + int64(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*work{asked, silent} {
		if a := h.ask(w, "a"); !a.End || w.kill == nil || w.kill.cause != executor.Fenced || !w.cannotRun(nil) {
			t.Errorf("got %+v, kill %+v", a, w.kill)
		}
	}
	if a := h.ask(h.leased(t, 3, 0), "a"); a.End {
		t.Errorf("a new one: got %+v", a)
	}
}

// TestLeaseOutlivesTheBroker, but not its machine: a fence of an earlier life of that is
// void, and what its watchdog was told then is waited for.
func TestLeaseOutlivesTheBroker(t *testing.T) {
	cfg := good(t)
	h := guarded(t, cfg)
	w := h.leased(t, 1, 10*time.Second)
	if err := h.starter.writeTask(w); err == nil {
		t.Fatal("its folder is there twice")
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	if err := h.starter.writeTask(w); err != nil {
		t.Fatal(err)
	}
	key := string(h.leases.key)
	fence := executor.Boottime() + int64(30*time.Second)
	if err := errors.Join(h.Extend(fence), h.Close()); err != nil {
		t.Fatal(err)
	}
	if h.Extend(1) == nil {
		t.Error("a closed handler is extended")
	}
	for boot, want := range map[string]struct {
		fence int64
		run   string
	}{"": {w.fence, ""}, "earlier": {0, "forgotten"}} {
		h = guarded(t, cfg)
		if string(h.leases.key) != key || h.leases.fence.Load() != fence {
			t.Error("key or fence are others")
		}
		again := h.works.newWork(attempts.AdoptedAttempt(w.Task))
		m := memo{Task: w.Task, Watched: true, Boot: h.leases.boot + boot}
		if err := h.leases.adopt(again, m); err != nil {
			t.Fatal(err)
		}
		if again.fence != want.fence || again.run != want.run || !again.watched {
			t.Errorf("%q: got %+v", boot, again.lease)
		}
		if latest := fence; boot == "" && again.granted != latest || boot != "" &&
			again.granted < executor.Boottime()+int64(guard.MaxLeft/2) {
			t.Errorf("%q: waits until %s", boot, time.Duration(again.granted-executor.Boottime()))
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertain: of a watched attempt that Kubernetes has lost sight of, the end is told
// when its watchdog must have ended it, and not before.
func TestCertain(t *testing.T) {
	h := guarded(t, good(t))
	w := h.leased(t, 1, 10*time.Second)
	h.ask(w, "a")
	if err := h.finisher.endAttempt(w, vanished("gone"), [2]int64{}); err != nil || w.Ended != nil {
		t.Fatalf("got %v, %+v: it may live", err, w.Ended)
	}
	if a := h.ask(w, "a"); !a.End {
		t.Errorf("got %+v: it would live on", a)
	}
	w.granted = executor.Boottime() - 1
	if err := h.finisher.endAttempt(w, vanished("gone"), [2]int64{}); err != nil || w.Ended == nil ||
		w.Ended.Result.Cause != executor.Fenced {
		t.Errorf("got %v, %+v, want Fenced", err, w.Ended)
	}
	waits := h.leased(t, 2, 10*time.Second)
	if err := h.finisher.endAttempt(waits, vanished("gone"), [2]int64{}); err != nil || waits.Ended == nil {
		t.Errorf("got %v, %+v: it never began", err, waits.Ended)
	}
	dark := h.leased(t, 3, 10*time.Second)
	pod := &podView{node: "node-1", podState: &podState{}}
	h.ask(dark, "a")
	if r := h.leases.mustBeDead(dark, pod); r != nil {
		t.Errorf("got %+v: it may live", r)
	}
	dark.granted = executor.Boottime() - int64(silence)
	if r := h.leases.mustBeDead(dark, pod); r == nil || r.Cause != executor.Fenced {
		t.Errorf("got %+v, want Fenced", r)
	}
	if r := h.leases.mustBeDead(dark, &podView{podState: &podState{}}); r != nil {
		t.Errorf("got %+v: it has no node yet", r)
	}
}

// TestLeaveBeforeItsPodIsSeen: a watchdog may reach this broker while the watch of pods is
// behind, or the API server away. What it was given leave for runs: it is no late start,
// and no end of it is told before it must be dead.
func TestLeaveBeforeItsPodIsSeen(t *testing.T) {
	h := guarded(t, good(t))
	for n, end := range []func(w *work) error{
		func(w *work) error { return h.finisher.endAttempt(w, w.kill.unstarted(), [2]int64{}) },
		func(w *work) error {
			return h.finisher.endAttempt(w, lost("its Job was deleted from outside"), [2]int64{})
		},
	} {
		w := h.leased(t, uint32(n), 10*time.Second)
		w.let, w.since = "", time.Now().Add(-h.cfg.StartLimit)
		h.ask(w, "a")
		if h.reconciler.decide(w, nil); w.kill != nil {
			t.Errorf("%d: given up as a late start: %+v", n, w.kill)
		}
		w.kill = &kill{cause: executor.Stopped, why: "cancelled"}
		if w.cannotRun(nil) {
			t.Errorf("%d: said to have never run", n)
		}
		if err := end(w); err != nil || w.Ended != nil {
			t.Errorf("%d: got %v, %+v: it may live", n, err, w.Ended)
		}
		w.granted = executor.Boottime() - 1
		if err := end(w); err != nil || w.Ended == nil || w.Ended.Result.Cause != executor.Stopped {
			t.Errorf("%d: got %v, %+v, want Stopped", n, err, w.Ended)
		}
	}
}

// TestHeard: how a task ended by its watchdog's words, beside those of Kubernetes.
func TestHeard(t *testing.T) {
	h := guarded(t, good(t))
	task := executor.Task{Timeout: 5 * time.Second, Need: executor.Resources{MemMiB: 64}}
	stop := &kill{cause: executor.Stopped, why: "cancelled"}
	began := metav1.NewTime(time.Unix(1000, 0))
	ended := func(code int32, reason, message string) *podState {
		return &podState{ended: &corev1.ContainerStateTerminated{
			StartedAt: began, FinishedAt: began, ExitCode: code,
			Reason: reason, Message: message,
		}}
	}
	evictedPod := ended(143, "Error", `{"v":1,"begun":true,"cause":2,"exit":143,"signal":15}`)
	evictedPod.disrupted = "EvictionByEvictionAPI: drained"
	failed := &podState{noWatchdog: "the watchdog's image: ErrImagePull: no"}
	for name, c := range map[string]struct {
		run  string
		pod  *podState
		kill *kill
		want executor.Result
	}{
		"exit":          {"r", ended(0, "Completed", `{"v":1,"begun":true,"ran":1500000000}`), nil, executor.Result{Run: 1500 * time.Millisecond}},
		"137 by itself": {"r", ended(137, "Error", `{"v":1,"begun":true,"ran":1,"exit":137,"detail":"exited with code 137"}`), nil, executor.Result{Run: 1, ExitCode: 137, Detail: "exited with code 137"}},
		"memory":        {"r", ended(137, "OOMKilled", `{"v":1,"begun":true,"ran":1,"exit":137,"signal":9}`), nil, executor.Result{Run: 1, ExitCode: 137, Signal: 9, Detail: "killed: out of memory (limit 64Mi)"}},
		"lease": {
			"r", ended(137, "Error", `{"v":1,"begun":true,"ran":1,"cause":3,"exit":137,"signal":9,"detail":"killed: its site's lease ended"}`), nil,
			executor.Result{Cause: executor.Fenced, Run: 1, ExitCode: 137, Signal: 9, Detail: "killed: its site's lease ended"},
		},
		"timeout": {
			"r", ended(143, "Error", `{"v":1,"begun":true,"ran":1,"cause":1,"exit":143,"signal":15,"detail":"over"}`), nil,
			executor.Result{Cause: executor.TimedOut, Run: 5 * time.Second, ExitCode: 143, Signal: 15, Detail: "over"},
		},
		"stop": {
			"r", ended(143, "Error", `{"v":1,"begun":true,"ran":1,"cause":2,"exit":143,"signal":15}`), stop,
			executor.Result{Cause: executor.Stopped, Run: 1, ExitCode: 143, Signal: 15, Detail: "stopped: cancelled"},
		},
		"drained": {"r", evictedPod, nil, executor.Result{
			Cause: executor.Stopped, Run: 1, ExitCode: 143, Signal: 15,
			Detail: "lost: EvictionByEvictionAPI: drained",
		}},
		"signalled by itself": {
			"r", ended(143, "Error", `{"v":1,"begun":true,"ran":9,"cause":2,"exit":143,"signal":15,"detail":"`+guard.Signalled+`"}`), nil,
			executor.Result{
				Cause: executor.Orphaned, Run: 9, ExitCode: 143, Signal: 15,
				Detail: "orphaned: its watchdog was signalled to end, and its pod not to go",
			},
		},
		"no such command": {"r", ended(127, "Error", `{"v":1,"cause":5,"exit":127,"detail":"no such command"}`), nil, executor.Result{Cause: executor.NoStart, ExitCode: 127, Detail: "no such command"}},
		"no leave":        {"", ended(125, "Error", `{"v":1,"cause":3,"exit":125,"detail":"not started: nobody answers"}`), nil, executor.Result{Cause: executor.Stopped, Detail: "lost: not started: nobody answers"}},
		"no watchdog":     {"", failed, nil, executor.Result{Cause: executor.Stopped, Detail: "lost: not started: the watchdog's image: ErrImagePull: no"}},
		"lapsed": {
			"", ended(125, "Error", ""), &kill{cause: executor.Fenced, why: "its site's lease ended"},
			executor.Result{Cause: executor.Fenced, Detail: "stopped before it began: its site's lease ended"},
		},
		"killed itself": {"r", ended(137, "Error", "x"), nil, executor.Result{Run: time.Millisecond, ExitCode: 137, Signal: 9, Detail: "killed by signal SIGKILL"}},
	} {
		w := h.works.newWork(attempts.NewAttempt(task))
		w.watched, w.run = true, c.run
		p := &podView{podState: c.pod}
		r := h.leases.outcome(w, p, c.kill, outcome(task, p, c.kill, 0))
		r.Started = time.Time{}
		if r != c.want {
			t.Errorf("%s: got %+v\nwant %+v", name, r, c.want)
		}
	}
}

// TestWatchdogFits: an image's own command cannot be put under a watchdog; own tasks
// have none.
func TestWatchdogFits(t *testing.T) {
	if err := fitWatched(executor.Task{Image: "a"}); !errors.Is(err, executor.ErrUnfit) ||
		!strings.Contains(err.Error(), "give the job a command") {
		t.Errorf("got %v", err)
	}
	if err := fitWatched(executor.Task{Image: "a", Command: []string{"x"}}); err != nil {
		t.Errorf("got %v", err)
	}
	cfg := good(t)
	cfg.Watchdog = Watchdog{Image: "a", Listen: "127.0.0.1:0", URL: "http://127.0.0.1:1"}
	if _, err := Open(cfg); err == nil {
		t.Error("it is opened without its fence")
	}
	cfg.Watchdog.Listen = "192.0.2.1:1"
	if _, err := OpenWatched(cfg); err == nil || !strings.Contains(err.Error(), "listen for watchdogs") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "watchdog.key")); err != nil {
		t.Error(err)
	}
	if _, err := OpenWatched(good(t)); err == nil {
		t.Error("it is opened without a watchdog")
	}
}
