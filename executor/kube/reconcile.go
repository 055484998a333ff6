package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
)

// reconciler compares Jobs with what is wanted of them, and does the difference.
type reconciler struct {
	cfg      *Config
	api      *api
	life     *life
	works    *workSet
	specs    *jobBuilder
	view     *clusterView
	leases   *leases
	reach    *reach
	client   *jobClient
	output   *taskOutput
	finisher *finisher
}

// Times of looking again, when no watch would say.
const (
	unseen  = 5 * time.Second // a Job that was made and is not shown
	askEach = 30 * time.Second
)

// run looks at Jobs until the handler is closed.
func (c *reconciler) run() {
	for {
		job, over := c.works.queue.Get()
		if over {
			return
		}
		again, err := c.sync(c.life.ctx, job)
		switch {
		case err != nil && c.life.ctx.Err() == nil:
			c.cfg.Logger.Debug().Err(err).Str("job", job).Msg("a Job could not be attended to, will be tried again")
			c.works.queue.AddRateLimited(job)
		case again > 0:
			c.works.queue.Forget(job)
			c.works.queue.AddAfter(job, again)
		default:
			c.works.queue.Forget(job)
		}
		c.works.queue.Done(job)
	}
}

// sync compares one Job with what is wanted of it, and does the difference. It is
// called for one name at a time, whenever something may have changed. again: in
// how long to look again, 0 = when told.
func (c *reconciler) sync(ctx context.Context, job string) (again time.Duration, err error) {
	c.works.mu.Lock()
	w := c.works.byJob[job]
	c.works.mu.Unlock()
	if !c.view.isSynced() {
		return 0, nil // everything is looked at then
	}
	v, pod := c.view.jobs.get(c.api.namespace+"/"+job), c.view.podOf(job)
	if w == nil || c.works.isEnded(w) {
		return c.finisher.cleanUp(ctx, w, v, pod)
	}
	return c.reconcileAttempt(ctx, w, v, pod)
}

// reconcileAttempt attends to an attempt that has not ended.
func (c *reconciler) reconcileAttempt(ctx context.Context, w *work, v *jobView, pod *podView) (time.Duration, error) {
	c.works.mu.Lock()
	if v != nil {
		w.made, w.seen = true, true
	}
	if pod != nil {
		w.pod, w.seen = pod, true
	} else {
		pod = w.pod // its last words
	}
	if pod != nil && !pod.gated && w.let == "" { // by others, or a server that knows no gates
		w.let = pod.name
	}
	if pod != nil && w.kill == nil { // an earlier life of the broker ended it
		w.kill = readOrder(pod.order)
	}
	made, seen, k, harmless := w.made, w.seen, w.kill, w.cannotRun(pod)
	c.works.mu.Unlock()
	if harmless {
		return 0, c.finisher.endAttempt(w, k.unstarted(), [2]int64{})
	}
	there := c.view.podOf(w.job) != nil
	switch {
	case pod != nil && (pod.over || pod.podState.ended != nil || !there || pod.deleting && pod.node == ""):
		return c.settlePod(ctx, w, v, pod)
	case pod == nil && v == nil && !made:
		return c.makeAgain(ctx, w)
	case pod == nil && v == nil:
		return c.missing(ctx, w, seen)
	case pod == nil && v.ended:
		return c.settleWithoutPod(ctx, w, v)
	case pod == nil && c.view.isReplaced(w):
		return c.settleReplaced(ctx, w)
	}
	if pod != nil && !pod.running.IsZero() && c.leases.hasLeave(w) {
		c.hasBegun(w)
	}
	if why := c.outOfSight(w, pod); why != "" {
		return 0, c.finisher.endAttempt(w, vanished(why), [2]int64{})
	}
	if r := c.leases.mustBeDead(w, pod); r != nil {
		return 0, c.finisher.endAttempt(w, *r, [2]int64{})
	}
	again, err := c.steer(ctx, w, pod)
	return c.leases.recheck(w, again), err
}

// outOfSight says why nothing more will be heard of an attempt whose node is
// silent, "" = something may. One for another site is given up with its pod, since
// the federation waits for its bound anyhow; one of this site when its bound has
// passed, and without a timeout never: not before Kubernetes gives its pod up.
func (c *reconciler) outOfSight(w *work, pod *podView) string {
	if pod == nil || pod.node == "" {
		return ""
	}
	n := c.view.nodes.get(pod.node)
	if n != nil && n.ready {
		return ""
	}
	bound, bounded := c.specs.bound(&w.Task, w.fetching())
	c.works.mu.Lock()
	since := w.since
	c.works.mu.Unlock()
	switch {
	case bounded && time.Since(since) > bound:
		return fmt.Sprintf("node %s does not answer, and its time is over", pod.node)
	case w.Task.Fence != 0 && pod.deleting && pod.disrupted != "":
		return inLine(fmt.Sprintf("node %s does not answer: %s", pod.node, pod.disrupted))
	}
	return ""
}

// steer ends what must end, and tells what a start waits for.
func (c *reconciler) steer(ctx context.Context, w *work, pod *podView) (time.Duration, error) {
	again := c.decide(w, pod)
	c.works.mu.Lock()
	k, harmless := w.kill, w.cannotRun(pod)
	c.works.mu.Unlock()
	switch {
	case k == nil && pod != nil && pod.gated:
		err := c.client.letGo(ctx, w, pod)
		c.emitDoing(w, pod)
		return again, err
	case k == nil:
		c.emitDoing(w, pod)
		return again, nil
	case harmless:
		return 0, c.finisher.endAttempt(w, k.unstarted(), [2]int64{})
	}
	c.emitDoing(w, pod)
	return c.client.end(ctx, w, pod, k)
}

// decide whether the attempt is to end; again: when to look again if not.
func (c *reconciler) decide(w *work, pod *podView) (again time.Duration) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if pod != nil && pod.node != "" {
		close1(w.placed)
	}
	switch now := time.Now(); {
	case w.kill != nil:
	case pod != nil && pod.running.IsZero() && isWrongImage(pod.waiting, pod.what):
		w.kill = &kill{cause: executor.NoStart, why: inLine(fmt.Sprintf("image %s: %s: %s", w.image, pod.waiting, pod.what))}
	case !w.began.IsZero() && w.Task.Timeout > 0:
		// What is to leave files is ended by its watchdog, and sends them then.
		if again = time.Until(w.began.Add(w.Task.Timeout + sending(&w.Task))); again <= 0 {
			w.kill = &kill{cause: executor.TimedOut}
		}
	case w.began.IsZero() && w.run == "": // with leave it runs, seen or not
		limit := c.cfg.StartLimit + w.fetching()
		if again = w.since.Add(limit).Sub(now); again <= 0 {
			w.kill = &kill{cause: executor.Stopped, decline: true, why: fmt.Sprintf("not within %s: %s", limit, w.waits(pod))}
		}
	}
	return again
}

// waits says what a start waits for. REQUIRES: workSet.mu held.
func (w *work) waits(pod *podView) string {
	switch {
	case w.kill != nil:
		return "being ended, and its node has not said that it has: " + w.kill.why
	case pod != nil && pod.gated && w.unclear != "":
		return "waiting for the API server to let its pod go: " + w.unclear
	case pod != nil && w.watched && !pod.running.IsZero():
		return "its watchdog waits for an answer of this site's broker"
	case pod != nil && w.files > 0 && pod.waiting == podInitializing && pod.noWatchdog == "":
		return fmt.Sprintf("fetching %d files on node %s", w.files, pod.node)
	case pod != nil:
		return pod.waitsFor()
	case !w.made && w.unclear != "":
		return "waiting for the API server to say whether its Job was made: " + w.unclear
	}
	return "waiting for Kubernetes to make its pod"
}

// emitDoing says what a start waits for.
func (c *reconciler) emitDoing(w *work, pod *podView) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if doing := w.waits(pod); w.began.IsZero() && doing != w.doing {
		w.doing = doing
		c.works.attempts.Events.Put(executor.Event{ID: w.Task.ID, Doing: doing})
	}
}

// hasBegun tells it once, over all lives of the broker: its moment, which the
// timeout counts from, is kept.
func (c *reconciler) hasBegun(w *work) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if !w.began.IsZero() || w.Ended != nil {
		return
	}
	w.began = time.Now()
	if w.adopted && w.pod.running.Before(w.began) {
		w.began = w.pod.running // by its kubelet's clock: nobody here has seen it
	}
	if err := writeFile(w.dir, beganFile, w.began); err != nil {
		c.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("start not recorded; it may be reported again after a restart")
	}
	close1(w.placed)
	close1(w.running)
	c.works.attempts.Events.Put(executor.Event{ID: w.Task.ID, Started: true})
}

// settlePod ends an attempt whose pod has ended or gone; v is nil if its Job is not
// there.
func (c *reconciler) settlePod(ctx context.Context, w *work, v *jobView, pod *podView) (time.Duration, error) {
	e := pod.podState.ended
	gone := c.view.podOf(w.job) == nil
	if e == nil && v != nil && !v.succeeded.IsZero() {
		return 0, c.finisher.endAttempt(w, c.succeeded(w, v), [2]int64{})
	}
	if e == nil && pod.node != "" && (gone || strings.HasPrefix(pod.disrupted, "DeletionByPodGC")) {
		// Not by its kubelet's word: somebody gave it up.
		why := fmt.Sprintf("its pod on node %s was given up: %s", pod.node, cmp.Or(pod.disrupted, "removed by force"))
		return 0, c.finisher.endAttempt(w, vanished(inLine(why)), [2]int64{})
	}
	c.works.mu.Lock()
	k, began := w.kill, w.began
	c.works.mu.Unlock()
	if k == nil && v != nil && v.overdue && e != nil && !e.StartedAt.IsZero() { // nobody was here to end it in time
		k = &kill{cause: executor.TimedOut}
	}
	var seen time.Duration
	if !began.IsZero() {
		seen = time.Since(began)
	}
	if again := c.awaitsPhase(w, pod); again > 0 && !gone {
		return again, nil
	}
	var out [2]int64
	if e != nil && !e.StartedAt.IsZero() {
		var again time.Duration
		if out, again = c.output.keep(ctx, w, pod, gone); again > 0 {
			return again, nil
		}
	}
	return 0, c.finisher.endAttempt(w, c.leases.outcome(w, pod, k, outcome(w.Task, pod, k, seen)), out)
}

// missing: neither Job nor pod are there, though the Job was made.
func (c *reconciler) missing(ctx context.Context, w *work, seen bool) (time.Duration, error) {
	c.works.mu.Lock()
	k, since := w.kill, time.Since(w.since)
	c.works.mu.Unlock()
	if !seen && since < unseen {
		return unseen - since, nil // the watch is behind
	}
	_, err := c.api.job(ctx, w.job)
	if err == nil {
		return unseen, nil
	}
	if !apierrors.IsNotFound(err) {
		return 0, c.reach.answered(fmt.Errorf("look for Job %s: %w", w.job, err))
	}
	// A Job goes before its pods.
	if there, err := c.client.hasPod(ctx, w, ""); there || err != nil {
		return unseen, err
	}
	switch {
	case k != nil && seen:
		return 0, c.finisher.endAttempt(w, k.unstarted(), [2]int64{})
	case seen:
		return 0, c.finisher.endAttempt(w, lost("its Job was deleted from outside"), [2]int64{})
	}
	return 0, c.finisher.endAttempt(w, c.unmade(w, "its Job is not there"), [2]int64{})
}

// unmade returns the end of an attempt whose Job is not there. An earlier life of the broker may have
// let a pod of it go, for all that is known.
func (c *reconciler) unmade(w *work, why string) executor.Result {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if w.adopted {
		return vanished("not started: " + why)
	}
	return lost("not started: " + why)
}

// settleReplaced ends an attempt whose pod went while nobody here looked, and was made once
// more: that one is never let go, so nothing more would be heard.
func (c *reconciler) settleReplaced(ctx context.Context, w *work) (time.Duration, error) {
	c.works.mu.Lock()
	let := w.let
	c.works.mu.Unlock()
	if there, err := c.client.hasPod(ctx, w, let); there || err != nil {
		return unseen, err
	}
	return 0, c.finisher.endAttempt(w, vanished("its pod is gone, and Kubernetes has made another"), [2]int64{})
}

// settleWithoutPod ends an attempt whose Job has ended without a pod to show.
func (c *reconciler) settleWithoutPod(ctx context.Context, w *work, v *jobView) (time.Duration, error) {
	if there, err := c.client.hasPod(ctx, w, ""); there || err != nil {
		return unseen, err
	}
	return 0, c.finisher.endAttempt(w, c.withoutPod(ctx, w, v), [2]int64{})
}

// succeeded returns the end of an attempt of which only its Job is left: its pod went
// with its node, or as one of too many, while nobody here looked.
func (c *reconciler) succeeded(w *work, v *jobView) executor.Result {
	c.output.markMissing(w, "its pod was removed before it could be read")
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	r := executor.Result{Started: v.begun}
	if !w.began.IsZero() {
		r.Started = w.began
	}
	r.Run = max(v.succeeded.Sub(r.Started), time.Millisecond)
	return r
}

// withoutPod returns how it ended.
func (c *reconciler) withoutPod(ctx context.Context, w *work, v *jobView) executor.Result {
	c.works.mu.Lock()
	k, began := w.kill, w.began
	c.works.mu.Unlock()
	switch {
	case !v.succeeded.IsZero():
		return c.succeeded(w, v)
	case v.overdue && !began.IsZero():
		late := &kill{cause: executor.TimedOut}
		return executor.Result{
			Cause: late.cause, Started: began, Run: w.Task.Timeout, ExitCode: 137, Signal: 9,
			Detail: late.detail(w.Task),
		}
	case k != nil:
		return k.unstarted()
	case !began.IsZero():
		return lost(inLine("its pod is gone: " + v.reason + ": " + v.message))
	}
	why := v.reason + ": " + v.message
	if said := c.client.complaint(ctx, w); said != "" {
		why = said
	}
	return lost(inLine("not started: " + why))
}

// makeAgain repeats a create of which it is not known what became. Since the name
// is the attempt's own, one that was made is found so.
func (c *reconciler) makeAgain(ctx context.Context, w *work) (time.Duration, error) {
	c.works.mu.Lock()
	k, adopted, late, unclear := w.kill, w.adopted, time.Since(w.since) > c.cfg.StartLimit, w.unclear
	c.works.mu.Unlock()
	if k != nil || late || adopted {
		_, err := c.api.job(ctx, w.job)
		if !apierrors.IsNotFound(err) {
			return unseen, c.reach.answered(err)
		}
		if k == nil {
			k = &kill{why: "the API server does not say whether its Job was made: " + unclear}
		}
		return 0, c.finisher.endAttempt(w, c.unmade(w, k.why), [2]int64{})
	}
	err := c.client.create(ctx, w)
	switch refused := (*refusal)(nil); {
	case err == nil:
		c.works.mu.Lock()
		w.made = true
		c.works.mu.Unlock()
		return unseen, nil
	case errors.As(err, &refused), errors.Is(err, executor.ErrLate):
		// What was asked for before may come to be all the same, and is removed then.
		return 0, c.finisher.endAttempt(w, lost(inLine("not started: "+err.Error())), [2]int64{})
	}
	c.client.isUnclear(w, err)
	c.emitDoing(w, nil)
	return 0, err
}
