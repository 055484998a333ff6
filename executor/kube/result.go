package kube

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Reasons that Kubernetes gives.
const (
	deadlineExceeded = "DeadlineExceeded"
	evicted          = "Evicted"
	oomKilled        = "OOMKilled"
	startError       = "StartError"
	podInitializing  = "PodInitializing"
)

// kill is why an attempt is being ended.
type kill struct {
	cause executor.Cause // Stopped, TimedOut, Fenced or NoStart
	why   string
	// hand it back: Start still waits, and answers executor.ErrBusy.
	decline bool
}

// leaseEnded is why what has outlived its fence is ended.
func leaseEnded() *kill { return &kill{cause: executor.Fenced, why: "its site's lease ended"} }

// lost returns the end of an attempt of which nothing runs any more, through no fault
// of its own: nobody asked for its stop.
func lost(why string) executor.Result {
	return executor.Result{Cause: executor.Stopped, Detail: "lost: " + why}
}

// vanished returns the end of one that may still run where nobody can see it.
func vanished(why string) executor.Result {
	return executor.Result{Cause: executor.Vanished, Detail: "lost: " + why}
}

// outcome returns how an attempt ended whose pod has: k is nil if nobody here ended it,
// seen how long it was seen to run, 0 = never.
func outcome(t executor.Task, p *podView, k *kill, seen time.Duration) executor.Result {
	r := ended(t, p)
	if !r.Started.IsZero() {
		r.Run = measured(p.ended, seen)
	}
	switch {
	case k != nil && r.Started.IsZero():
		return k.unstarted()
	case k != nil && !p.isOwnEnd():
		r.Cause, r.Detail = k.cause, k.detail(t)
		if k.cause == executor.TimedOut {
			r.Run = max(r.Run, t.Timeout)
		}
	}
	if r.Cause != executor.Exited && r.Cause != executor.NoStart && r.Signal == 0 && r.ExitCode == 0 &&
		!r.Started.IsZero() {
		r.ExitCode, r.Signal = 137, 9
	}
	return r
}

// unstarted returns the end of an attempt that was given up before it ran.
func (k *kill) unstarted() executor.Result {
	switch {
	case k.cause == executor.NoStart:
		return executor.Result{Cause: executor.NoStart, ExitCode: 125, Detail: k.why}
	case k.decline:
		return lost("not started: " + k.why)
	}
	return executor.Result{Cause: k.cause, Detail: "stopped before it began: " + k.why}
}

func (k *kill) detail(t executor.Task) string {
	if k.cause == executor.TimedOut {
		return fmt.Sprintf("killed: over its timeout of %s", t.Timeout)
	}
	if k.cause == executor.Fenced {
		return "killed: its site's lease ended"
	}
	return "stopped: " + cmp.Or(k.why, "the broker asked for it")
}

// ended reads the pod's own words.
func ended(t executor.Task, p *podView) executor.Result {
	e := p.podState.ended
	if e == nil {
		e = &corev1.ContainerStateTerminated{}
	}
	r := executor.Result{Started: e.StartedAt.Time, ExitCode: int(e.ExitCode), Signal: signal(e)}
	switch {
	case isNoStart(e):
		return executor.Result{
			Cause: executor.NoStart, ExitCode: noStartCode(e.Message),
			Detail: noStart(e.Message),
		}
	case e.Reason == startError || e.Reason == "ContainerCannotRun":
		return lost("not started: " + withoutNames(e.Message))
	case e.Reason == "ContainerStatusUnknown":
		return with(r, inLine(e.Reason+": "+e.Message))
	case p.reason == deadlineExceeded && r.Started.IsZero():
		return lost("not started: over the active deadline of its pod")
	case p.reason == deadlineExceeded:
		r.Cause, r.Detail = executor.TimedOut, fmt.Sprintf("killed by its kubelet: over its timeout of %s and the time to start", t.Timeout)
	case p.reason == evicted && isOwnFault(p.message):
		r.Detail = inLine("evicted: " + p.message)
		r.ExitCode, r.Signal = 137, 9
	// Evicted, OutOfcpu, NodeShutdown, Preempting, UnexpectedAdmissionError …
	case p.reason != "" && p.phase == corev1.PodFailed:
		return with(r, inLine(p.reason+": "+p.message))
	case p.disrupted != "" && e.ExitCode != 0: // else it came to its end all the same
		return with(r, inLine(p.disrupted))
	case e.Reason == oomKilled:
		r.Detail = watchdog.OutOfMemory(t, 0)
		if t.Need.MemMiB == 0 {
			r.Detail = "killed: its node ran out of memory"
		}
	case p.podState.ended == nil && p.disrupted != "":
		return lost(inLine(p.disrupted))
	case p.podState.ended == nil:
		return lost("its pod was removed")
	case p.deleting && e.ExitCode != 0:
		return with(r, "its pod was deleted from outside")
	case r.Signal != 0:
		r.Detail = "killed by signal " + unix.SignalName(unix.Signal(r.Signal))
	case r.ExitCode != 0:
		r.Detail = fmt.Sprintf("exited with code %d", r.ExitCode)
	}
	return r
}

// with returns a loss that keeps when the task began, and what it has used.
func with(r executor.Result, why string) executor.Result {
	l := lost(why)
	l.Started, l.ExitCode, l.Signal, l.Usage = r.Started, r.ExitCode, r.Signal, r.Usage
	return l
}

// signal that a container ended by. Runtimes tell it as a shell does: as an exit
// code above 128, which a task that exits so by itself cannot be told from.
func signal(e *corev1.ContainerStateTerminated) int {
	if e.Signal != 0 {
		return int(e.Signal)
	}
	if e.ExitCode > 128 && e.ExitCode <= 128+64 {
		return int(e.ExitCode) - 128
	}
	return 0
}

// measured returns how long the task ran. A kubelet tells seconds; what was seen here
// is more exact, unless it was not seen in time.
func measured(e *corev1.ContainerStateTerminated, seen time.Duration) time.Duration {
	told := e.FinishedAt.Sub(e.StartedAt.Time)
	if d := seen - told; seen > 0 && d > -time.Second && d < 2*time.Second {
		told = seen
	}
	return max(told, time.Millisecond)
}

// isOwnFault: the pod was evicted for what it did itself.
func isOwnFault(message string) bool {
	return strings.Contains(message, "exceeds the") || strings.Contains(message, "exceeded its")
}

// maxWords of Kubernetes in one line for people.
const maxWords = 600

func inLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}

// isWrongImage: it is the image's name that is wrong, or the right to it that
// lacks, not the way to the registry. Kubelets say so in words only.
func isWrongImage(reason, message string) bool {
	switch reason {
	case "InvalidImageName", "ErrImageNeverPull":
		return true
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError":
	default:
		return false
	}
	message = strings.ToLower(message)
	for _, words := range []string{"not found", "manifest unknown", "name unknown", "denied", "unauthorized", "no match for platform", "invalid reference"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// waitsFor says what keeps a pod of ours from running, in one line.
func (v *podView) waitsFor() string {
	switch {
	case v.node == "" && v.unplaced != "":
		return inLine("waiting for a node: " + v.unplaced)
	case v.node == "":
		return "waiting for Kubernetes' scheduler"
	case v.noWatchdog != "":
		return inLine(v.noWatchdog)
	case v.waiting == "" || v.waiting == "ContainerCreating" || v.waiting == podInitializing:
		return "starting on node " + v.node
	case strings.Contains(v.waiting, "Container"): // RunContainerError and such, not an image's
		return withoutNames(v.waiting + ": " + v.what)
	}
	return inLine(v.waiting + ": " + v.what)
}
