package kube

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
)

// installer is the container that brings the watchdog.
const installer = "watchdog"

// putUnder puts a pod's task under a watchdog: a container before it copies this
// program to a volume, and the task's begins with it.
func (b *jobBuilder) putUnder(w *work, pod *corev1.PodSpec) error {
	orders, err := guard.Orders{
		URL: b.cfg.Watchdog.URL, Attempt: w.Name, Secret: guard.SecretOf(b.key, w.Name),
		Grace: b.cfg.Grace, Timeout: w.Task.Timeout, Patience: b.cfg.StartLimit,
		Free: !w.watched, Files: b.filesOf(w),
	}.Encode()
	if err != nil {
		return fmt.Errorf("%w: orders of its watchdog: %w", executor.ErrUnfit, err)
	}
	mount := corev1.VolumeMount{Name: installer, MountPath: guard.Dir}
	need := w.Task.Need
	need.GPU = 0
	// It asks for no more than the task, so for nothing that counts.
	pod.InitContainers = []corev1.Container{{
		Name: installer, Image: b.cfg.Watchdog.Image, ImagePullPolicy: corev1.PullPolicy(b.cfg.PullPolicy),
		Args: []string{guard.Verb, guard.Install, guard.Dir}, Resources: b.resources(need),
		VolumeMounts: []corev1.VolumeMount{mount}, SecurityContext: pod.Containers[0].SecurityContext.DeepCopy(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name:         installer,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	b.carryFiles(w, &pod.InitContainers[0], orders)
	mount.ReadOnly = true
	box := &pod.Containers[0]
	box.VolumeMounts = append(box.VolumeMounts, mount)
	box.Command = append([]string{guard.Program, guard.Verb}, box.Command...)
	box.Env = append(box.Env, corev1.EnvVar{Name: guard.Variable, Value: escape(orders)})
	if w.watched { // it begins nothing without leave, which is better than a gate
		pod.SchedulingGates = nil
	}
	// It is deaf to the task's signals only as the first process of a namespace.
	pod.ShareProcessNamespace = nil
	// It ends the task itself after the grace, and has something to say and to send then.
	pod.TerminationGracePeriodSeconds = ptr(seconds(b.cfg.Grace) + 1 + seconds(sending(&w.Task)))
	return nil
}

// filesOf returns what a pod is told of its task's files.
func (b *jobBuilder) filesOf(w *work) *guard.Files {
	if !w.carried {
		return nil
	}
	f := &guard.Files{
		Key: carry.KeyOf(b.key).Public(), Fetch: w.fetching() > 0, Fetching: w.fetching(),
		Outputs: w.Task.Outputs, Sending: sending(&w.Task),
	}
	f.Outputs.MaxBytes = most(&w.Task)
	return f
}

// carryFiles has the container that brings the watchdog fetch its task's files, too.
func (b *jobBuilder) carryFiles(w *work, c *corev1.Container, orders string) {
	if w.fetching() == 0 {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: guard.Variable, Value: escape(orders)})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: workVolume, MountPath: guard.Work})
}

// noWatchdog says what keeps the watchdog from a pod, "" = nothing.
func noWatchdog(p *corev1.Pod) string {
	for i := range p.Status.InitContainerStatuses {
		if p.Status.InitContainerStatuses[i].Name != installer {
			continue
		}
		s := &p.Status.InitContainerStatuses[i].State
		switch {
		case s.Terminated != nil && s.Terminated.ExitCode != 0:
			return fmt.Sprintf("the watchdog cannot be put into its pod: %s: %s", s.Terminated.Reason, s.Terminated.Message)
		case s.Waiting != nil && strings.HasPrefix(s.Waiting.Reason, "Err"), s.Waiting != nil &&
			strings.Contains(s.Waiting.Reason, "Image"):
			return "the watchdog's image: " + s.Waiting.Reason + ": " + s.Waiting.Message
		}
	}
	return ""
}

// outcome returns how an attempt ended whose pod has: see there; with what its
// watchdog says, if it had one.
func (l *leases) outcome(w *work, p *podView, k *kill, seen executor.Result) executor.Result {
	l.works.mu.Lock()
	watched, begun, carried := w.watched, w.run != "", w.carried
	if watched && !begun && w.kill == nil { // no other life of its container begins now
		w.kill = &kill{cause: executor.Stopped, why: "its pod has ended"}
	}
	l.works.mu.Unlock()
	switch {
	case !watched && !carried:
		return seen
	case watched && !begun:
		return neverBegan(p, k, seen)
	case p.podState.ended == nil && p.noWatchdog != "" && k == nil:
		return lost(inLine("not started: " + p.noWatchdog))
	case p.podState.ended == nil:
		return seen
	}
	if t, ok := guard.ReadTold(p.podState.ended.Message); ok {
		l.works.mu.Lock()
		w.told, w.unsent = true, inLine(t.Unsent)
		l.works.mu.Unlock()
		return heard(w.Task, t, p, k, seen)
	}
	return seen // it was killed before it could tell
}

// neverBegan returns the end of a task whose watchdog was never given leave, whatever
// its pod says.
func neverBegan(p *podView, k *kill, seen executor.Result) executor.Result {
	if k != nil {
		return k.unstarted()
	}
	why := p.noWatchdog
	if e := p.podState.ended; e != nil && why == "" {
		t, _ := guard.ReadTold(e.Message)
		why = cmp.Or(strings.TrimPrefix(t.Detail, "not started: "), withoutNames(e.Message))
	}
	return lost(inLine("not started: " + cmp.Or(why, seen.Detail)))
}

// heard returns how a task ended by the words of its watchdog, who knows best; a reason
// that only Kubernetes knows, such as an eviction, is kept.
func heard(task executor.Task, t guard.Told, p *podView, k *kill, seen executor.Result) executor.Result {
	if !t.Begun {
		return notBegun(t)
	}
	r := seen
	r.Run, r.ExitCode, r.Signal, r.Usage = max(t.Ran, 1), t.ExitCode, t.Signal, t.Usage
	switch t.Cause {
	case executor.Exited:
		r.Cause, r.Detail = executor.Exited, inLine(t.Detail)
		if p.podState.ended.Reason == oomKilled && t.ExitCode != 0 {
			r.Detail = ended(task, p).Detail
		}
	case executor.TimedOut:
		r.Cause, r.Detail, r.Run = t.Cause, inLine(t.Detail), max(r.Run, task.Timeout)
	case executor.Fenced:
		r.Cause, r.Detail = t.Cause, inLine(t.Detail)
	case executor.Stopped, executor.Vanished, executor.NoStart, executor.Declined, executor.Orphaned:
		switch {
		case k != nil:
			r.Cause, r.Detail = k.cause, k.detail(task)
		case t.Detail == guard.Signalled && p.isAlone():
			r.Cause, r.Detail = executor.Orphaned, "orphaned: its watchdog was signalled to end, and its pod not to go"
		case seen.Cause == executor.Exited && p.reason != evicted:
			return with(r, inLine(t.Detail))
		}
	}
	return r
}

// isAlone: Kubernetes has not ended the pod, for all that it says.
func (p *podView) isAlone() bool {
	return !p.deleting && p.order == "" && p.reason == "" && p.disrupted == ""
}

// notBegun returns the end of a task whose watchdog was given leave and did not begin it.
func notBegun(t guard.Told) executor.Result {
	switch t.Cause {
	case executor.NoStart:
		return executor.Result{Cause: t.Cause, ExitCode: t.ExitCode, Detail: inLine(t.Detail)}
	case executor.Fenced, executor.Declined:
		return executor.Result{Cause: t.Cause, Detail: inLine(t.Detail)}
	case executor.Exited, executor.TimedOut, executor.Stopped, executor.Vanished, executor.Orphaned:
	}
	return lost(inLine(t.Detail))
}
