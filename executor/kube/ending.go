package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
)

// Words of an order, which its pod's noteEnd says.
const (
	orderTimedOut = "timed out"
	orderFenced   = "fenced"
	orderStopped  = "stopped: "
)

// order is what a pod's note says of why it is being ended: for the next life of the broker.
func (k *kill) order() string {
	switch k.cause {
	case executor.TimedOut:
		return orderTimedOut
	case executor.Fenced:
		return orderFenced
	case executor.Stopped, executor.Exited, executor.Vanished, executor.NoStart, executor.Declined, executor.Orphaned:
	}
	return orderStopped + inLine(k.why)
}

// readOrder reads one; nil = there is none.
func readOrder(text string) *kill {
	switch text {
	case "":
		return nil
	case orderTimedOut:
		return &kill{cause: executor.TimedOut}
	case orderFenced:
		return leaseEnded()
	}
	return &kill{cause: executor.Stopped, why: inLine(strings.TrimPrefix(text, orderStopped))}
}

// isOwnEnd: an ended task came to its end before it heard of ours. Where it is ended in place, the pod's phase tells: a
// kubelet that has enforced the deadline says so, but only after it has told the container's end.
func (v *podView) isOwnEnd() bool {
	return !v.deleting && (v.order == "" || v.isFinal() && v.reason == "")
}

func (v *podView) isFinal() bool {
	return v.phase == corev1.PodSucceeded || v.phase == corev1.PodFailed
}

// phaseWait bounds the time from the end of a container that its pod's phase is waited for: about a second.
const phaseWait = 3 * time.Second

// awaitsPhase returns when to look again at an ended task of which its pod does not say yet whether it was our order
// that ended it, 0 = that is clear, or will not be. TERM and KILL are an order's doing.
func (c *reconciler) awaitsPhase(w *work, pod *podView) time.Duration {
	e := pod.podState.ended
	if e == nil || pod.isFinal() || pod.deleting || pod.order == "" {
		return 0
	}
	if s := unix.Signal(signal(e)); (s == unix.SIGTERM || s == unix.SIGKILL) && e.Reason != oomKilled {
		return 0
	}
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if w.ceased.IsZero() {
		w.ceased = time.Now()
	}
	if time.Since(w.ceased) >= phaseWait {
		return 0
	}
	return relook
}

// end asks Kubernetes to end an attempt; again: when to ask once more.
func (c *jobClient) end(ctx context.Context, w *work, pod *podView, k *kill) (again time.Duration, err error) {
	c.works.mu.Lock()
	if w.spared.IsZero() {
		w.spared = time.Now().Add(askEach + c.cfg.Grace + sending(&w.Task))
	}
	spared, wait := time.Until(w.spared), time.Until(w.askAgain)
	c.works.mu.Unlock()
	switch {
	case wait > 0:
		return wait, nil
	case pod == nil:
		again, err = askEach, c.reach.answered(ignoreMissing(c.api.removeJob(ctx, w.job)))
	case spared > 0 && !pod.running.IsZero() && !pod.deleting:
		again, err = c.expire(ctx, w, pod, k, spared)
	default:
		again, err = c.removePod(ctx, pod)
	}
	if err != nil {
		return 0, fmt.Errorf("end %s: %w", w.Name, err)
	}
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	w.askAgain = time.Now().Add(again)
	return again, nil
}

func (c *jobClient) removePod(ctx context.Context, pod *podView) (time.Duration, error) {
	return askEach, c.reach.answered(ignoreMissing(c.api.removePod(ctx, pod.name)))
}

// expire ends what runs in a pod and leaves the pod, which has its output: of a deleted one
// the kubelet removes both as soon as nothing runs. What has not begun may be waiting for an
// image, which only a deletion breaks off.
func (c *jobClient) expire(
	ctx context.Context, w *work, pod *podView, k *kill, spared time.Duration,
) (time.Duration, error) {
	err := c.reach.answered(ignoreMissing(c.api.expirePod(ctx, pod, k.order())))
	switch {
	case err == nil:
		return spared, nil
	case isSilence(err), apierrors.IsTooManyRequests(err), apierrors.IsConflict(err):
		return 0, err
	}
	c.works.mu.Lock()
	w.spared = time.Now()
	c.works.mu.Unlock()
	if apierrors.IsInvalid(err) { // it runs no more, and the watch is behind
		return unseen, nil
	}
	c.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).
		Msg("the API server refuses to end a pod by its active deadline: it is deleted, and its output may be lost")
	return c.removePod(ctx, pod)
}
