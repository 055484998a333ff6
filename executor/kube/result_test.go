package kube

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
)

var (
	monday  = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	started = metav1.NewTime(monday)
	later   = metav1.NewTime(monday.Add(3 * time.Second))
)

func term(code int32, reason, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: started,
		FinishedAt: later,
	}
}

// TestOutcomes: what Kubernetes says of an end, and what people are told.
func TestOutcomes(t *testing.T) {
	task := executor.Task{Need: executor.Resources{MemMiB: 64}, Timeout: time.Minute}
	startFailed := `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: ` +
		`unable to start container process: exec: "no-such": executable file not found in $PATH: unknown`
	never := func(e *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
		e.StartedAt = metav1.Time{}
		return e
	}
	for name, c := range map[string]struct {
		pod    podState
		kill   *kill
		cause  executor.Cause
		code   int
		signal int
		detail string
	}{
		"success":    {pod: podState{ended: term(0, "Completed", "")}},
		"failure":    {pod: podState{ended: term(42, "Error", "")}, code: 42, detail: "exited with code 42"},
		"a signal":   {pod: podState{ended: term(139, "Error", "")}, code: 139, signal: 11, detail: "SIGSEGV"},
		"no memory":  {pod: podState{ended: term(137, "OOMKilled", "")}, code: 137, signal: 9, detail: "out of memory (limit 64Mi)"},
		"no command": {pod: podState{ended: never(term(128, "StartError", startFailed))}, cause: executor.NoStart, code: 127, detail: "its command is not there"},
		"no leak": {
			pod: podState{ended: never(term(128, "StartError", strings.ReplaceAll(startFailed, "executable file not found in $PATH", "input/output error")))}, cause: executor.Stopped,
			detail: "runc create failed: its command cannot be run",
		},
		"no node for it": {pod: podState{ended: never(term(128, "StartError", "cgroup: no space left"))}, cause: executor.Stopped, detail: "lost: not started: cgroup"},
		"deadline": {
			pod: podState{phase: corev1.PodFailed, reason: "DeadlineExceeded", ended: term(137, "Error", "")}, cause: executor.TimedOut, code: 137,
			signal: 9, detail: "timeout of 1m0s",
		},
		"deadline before it ran": {pod: podState{phase: corev1.PodFailed, reason: "DeadlineExceeded"}, cause: executor.Stopped, detail: "not started"},
		"evicted by its node": {
			pod: podState{phase: corev1.PodFailed, reason: "Evicted", message: "The node was low on resource: memory."}, cause: executor.Stopped, detail: "lost: Evicted: The node was low",
		},
		"evicted for its scratch": {
			pod:   podState{phase: corev1.PodFailed, reason: "Evicted", message: `Usage of EmptyDir volume "work" exceeds the limit "1Gi".`, ended: term(137, "Error", "")},
			cause: executor.Exited, code: 137, signal: 9, detail: "exceeds the limit",
		},
		"refused by its kubelet": {pod: podState{phase: corev1.PodFailed, reason: "OutOfcpu", message: "Node didn't have enough"}, cause: executor.Stopped, detail: "OutOfcpu"},
		"preempted": {
			pod: podState{deleting: true, disrupted: "PreemptionByScheduler: for a larger pod", ended: term(143, "Error", "")}, cause: executor.Stopped, code: 143,
			signal: 15, detail: "Preemption",
		},
		"done in spite of it": {pod: podState{deleting: true, disrupted: "DeletionByTaintManager: NoExecute", ended: term(0, "Completed", "")}},
		"deleted by somebody": {
			pod: podState{deleting: true, ended: term(137, "Error", "")}, cause: executor.Stopped, code: 137, signal: 9,
			detail: "from outside",
		},
		"its node forgot it": {pod: podState{ended: never(term(137, "ContainerStatusUnknown", "could not be located"))}, cause: executor.Stopped, code: 137, signal: 9, detail: "could not be located"},
		"stopped": {
			pod:  podState{deleting: true, ended: term(143, "Error", "")},
			kill: &kill{cause: executor.Stopped, why: "enough"}, cause: executor.Stopped, code: 143, signal: 15, detail: "stopped: enough",
		},
		"stopped in place": { // its container has ended, and its pod not quite
			pod:  podState{order: "stopped: enough", ended: term(143, "Error", "")},
			kill: &kill{cause: executor.Stopped, why: "enough"}, cause: executor.Stopped, code: 143, signal: 15, detail: "stopped: enough",
		},
		"stopped in place, at last": {
			pod: podState{
				order: "stopped: enough", phase: corev1.PodFailed, reason: deadlineExceeded, ended: term(0, "Completed", ""),
			},
			kill: &kill{cause: executor.Stopped, why: "enough"}, cause: executor.Stopped, code: 137, signal: 9, detail: "stopped: enough",
		},
		"done just before the stop in place": {
			pod:  podState{order: "stopped: enough", phase: corev1.PodSucceeded, ended: term(0, "Completed", "")},
			kill: &kill{cause: executor.Stopped, why: "enough"},
		},
		"failed just before its timeout": {
			pod:  podState{order: orderTimedOut, phase: corev1.PodFailed, ended: term(42, "Error", "")},
			kill: &kill{cause: executor.TimedOut}, code: 42, detail: "exited with code 42",
		},
		"evicted while it was stopped": {
			pod:  podState{order: "stopped: enough", phase: corev1.PodFailed, reason: evicted, ended: term(137, "Error", "")},
			kill: &kill{cause: executor.Stopped, why: "enough"}, cause: executor.Stopped, code: 137, signal: 9, detail: "stopped: enough",
		},
		"done before the stop": {pod: podState{ended: term(0, "Completed", "")}, kill: &kill{cause: executor.Stopped, why: "Insufficient cpu", decline: true}},
		"timed out": {
			pod: podState{deleting: true, ended: term(137, "Error", "")}, kill: &kill{cause: executor.TimedOut},
			cause: executor.TimedOut, code: 137, signal: 9, detail: "over its timeout",
		},
		"stopped before": {kill: &kill{cause: executor.Stopped, why: "enough"}, cause: executor.Stopped, detail: "before it began: enough"},
		"too late":       {kill: &kill{cause: executor.Stopped, why: "Insufficient cpu", decline: true}, cause: executor.Stopped, detail: "lost: not started: Insufficient cpu"},
		"a wrong image":  {kill: &kill{cause: executor.NoStart, why: "not found"}, cause: executor.NoStart, code: 125, detail: "not found"},
	} {
		got := outcome(task, &podView{podState: &c.pod}, c.kill, 2500*time.Millisecond)
		if got.Cause != c.cause || got.ExitCode != c.code || got.Signal != c.signal ||
			!strings.Contains(got.Detail, c.detail) || strings.Contains(got.Detail, "\n") {
			t.Errorf("%s: got %+v, want %+v", name, got, c)
		}
	}
}

// TestMeasured: what was seen counts if it agrees with the node's whole seconds.
func TestMeasured(t *testing.T) {
	e := term(0, "", "")
	for seen, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, 2500 * time.Millisecond: 2500 * time.Millisecond, 4 * time.Second: 4 * time.Second,
		time.Minute: 3 * time.Second, time.Second: 3 * time.Second,
	} {
		if got := measured(e, seen); got != want {
			t.Errorf("seen for %s: got %s, want %s", seen, got, want)
		}
	}
	e.FinishedAt = started
	if got := measured(e, 0); got != time.Millisecond {
		t.Errorf("within a second: got %s", got)
	}
}

func TestWrongImages(t *testing.T) {
	for message, want := range map[string]bool{
		`failed to resolve reference "r/absent:1": r/absent:1: not found`:                         true,
		"pull access denied, repository does not exist or may require authorization":              true,
		`dial tcp 127.0.0.1:1: connect: connection refused`:                                       false,
		`failed to do request: Head "https://r/v2/": dial tcp: lookup r: i/o timeout`:             false,
		`failed to copy: httpReadSeeker: failed open: server message: insufficient_scope: denied`: true,
	} {
		if got := isWrongImage("ErrImagePull", message); got != want {
			t.Errorf("%s: got %v", message, got)
		}
	}
	if !isWrongImage("ErrImageNeverPull", "") || isWrongImage("ContainerCreating", "not found") {
		t.Error("reasons are not told apart")
	}
}
