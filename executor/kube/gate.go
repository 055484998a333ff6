package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
)

// gate keeps a pod from the scheduler until it is let go: by its broker alone, one
// pod of an attempt, once. What was never let go cannot run, whoever made its pod,
// and however late.
const gate = "cloudshare/start"

func isGated(p *corev1.Pod) bool {
	for _, g := range p.Spec.SchedulingGates {
		if g.Name == gate {
			return true
		}
	}
	return false
}

// cannotRun: it is being given up, no watchdog was given leave, which may ask before its
// pod is seen here, and no pod of it was let go, or none is on a node. REQUIRES: workSet.mu held.
func (w *work) cannotRun(pod *podView) bool {
	return w.kill != nil && w.run == "" && (w.let == "" && !w.adopted || w.watched && (pod == nil || pod.node == ""))
}

// letGo has the scheduler place the attempt's pod.
func (c *jobClient) letGo(ctx context.Context, w *work, pod *podView) error {
	c.works.mu.Lock()
	first := w.let == ""
	if w.kill != nil || !first && w.let != pod.name { // there is another, which may run
		c.works.mu.Unlock()
		return nil
	}
	w.let = pod.name
	c.works.mu.Unlock()
	err := writeFile(w.dir, letFile, pod.name)
	if err == nil {
		err = c.ungate(ctx, w, pod.name)
	}
	refused := errors.Is(err, executor.ErrLate) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err)
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if refused && first { // else an earlier request may have been heard
		w.let = ""
	}
	switch {
	case err == nil:
		w.unclear = ""
	case apierrors.IsNotFound(err): // its watch will say so
	case refused && w.kill == nil:
		w.kill = &kill{cause: executor.Stopped, decline: true, why: "its pod was not let go: " + explain(err)}
		c.works.queue.Add(w.job)
	default:
		w.unclear = explain(err)
		return fmt.Errorf("let pod %s go: %w", pod.name, err)
	}
	return nil
}

// ungate looks at the clock before the request leaves. The pod may be let go a call's
// time later; from then on it lives no longer than in [Handler.Bound]. The clock is of
// this life of the machine: what an earlier life of the broker left is let go only if it
// has no fence.
func (c *jobClient) ungate(ctx context.Context, w *work, pod string) error {
	bound, _ := c.specs.bound(&w.Task, w.fetching())
	late := executor.Boottime() + int64(c.cfg.CallTimeout+bound-c.cfg.ControlLag)
	if w.Task.Fence != 0 && (w.adopted || late > w.Task.Fence) {
		return executor.ErrLate
	}
	return c.reach.answered(c.api.ungate(ctx, pod))
}
