package kube

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// jobView is what is known of a Job of ours.
type jobView struct {
	name     string
	deleting bool
	// ended: Kubernetes is done with it, for this reason.
	ended           bool
	reason, message string
	// overdue: its controller ends its pod, or has, over its active deadline.
	overdue bool
	// succeeded: its pod came to a good end, at that moment; zero = no.
	succeeded time.Time
	begun     time.Time // taken up by its controller, to the second
}

func readJob(o runtime.Object) *jobView {
	j, ok := o.(*batchv1.Job)
	if !ok {
		return nil
	}
	v := &jobView{name: j.Name, deleting: j.DeletionTimestamp != nil}
	if j.Status.StartTime != nil {
		v.begun = j.Status.StartTime.Time
	}
	for _, c := range j.Status.Conditions {
		// FailureTarget comes first, while pods still end.
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget) {
			v.overdue = c.Reason == batchv1.JobReasonDeadlineExceeded
		}
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) {
			v.ended, v.reason, v.message = true, c.Reason, c.Message
			if c.Type == batchv1.JobComplete {
				v.succeeded = c.LastTransitionTime.Time
			}
		}
	}
	return v
}

// podView is what is known of a pod, of ours or of others.
type podView struct {
	name, node string
	asks       amounts
	over       bool // it takes nothing any more
	job        string
	*podState  // nil = not ours
}

// podState is what is known of a pod of ours.
type podState struct {
	phase           corev1.PodPhase
	deleting, gated bool
	// order is why a broker of ours ended it and left it there, see noteEnd; "" = none did.
	order string
	// reason and message are the pod's; unplaced is the scheduler's, disrupted that
	// of whoever ends it.
	reason, message, unplaced, disrupted string
	// waiting and what, while its container does not run.
	waiting, what string
	// noWatchdog is what keeps its watchdog from it.
	noWatchdog string
	running    time.Time // zero = it does not; to the second
	at         int       // of the container that runs, among the pod's
	ended      *corev1.ContainerStateTerminated
}

// decoder reads Kubernetes' objects as far as they matter here.
type decoder struct {
	cfg       *Config
	home      string // of our Jobs, see labelHome
	namespace string
	choice    *nodeChoice
}

// readPod reads a pod as far as it matters here.
func (d *decoder) readPod(o runtime.Object) *podView {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	v := &podView{
		name: p.Name, node: strings.Clone(p.Spec.NodeName), asks: d.cfg.requests(&p.Spec),
		over: isOver(p),
	}
	if p.Namespace != d.namespace || p.Labels[labelHome] != d.home {
		return v
	}
	v.job = p.Labels[labelOfJob]
	v.podState = &podState{
		phase: p.Status.Phase, deleting: p.DeletionTimestamp != nil, gated: isGated(p),
		reason: p.Status.Reason, message: p.Status.Message, order: p.Annotations[noteEnd],
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable:
			v.unplaced = c.Message
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			v.disrupted = c.Reason + ": " + c.Message
		}
	}
	v.noWatchdog = noWatchdog(p)
	for i := range p.Status.ContainerStatuses {
		v.setState(i, &p.Status.ContainerStatuses[i].State)
	}
	return v
}

// isOver reports whether nothing of a pod runs any more. A kubelet says so of containers
// a second before it does of the pod.
func isOver(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	all := p.Status.ContainerStatuses
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever || len(all) < len(p.Spec.Containers) ||
		len(p.Spec.Containers) == 0 {
		return false
	}
	for i := range all {
		if all[i].State.Terminated == nil {
			return false
		}
	}
	return true
}

func (s *podState) setState(i int, c *corev1.ContainerState) {
	switch {
	case c.Terminated != nil:
		s.ended = c.Terminated.DeepCopy()
	case c.Running != nil:
		s.running, s.at = c.Running.StartedAt.Time, i
	case c.Waiting != nil:
		s.waiting, s.what = c.Waiting.Reason, c.Waiting.Message
	}
}

// readNode reads a node.
func (d *decoder) readNode(o runtime.Object) *node {
	n, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	return d.node(n)
}

// node reads one as far as it matters here.
func (d *decoder) node(n *corev1.Node) *node {
	c := d.cfg
	out := &node{name: n.Name, has: c.amounts(n.Status.Allocatable)}
	out.has.pods, out.disk = n.Status.Allocatable.Pods().Value(), n.Status.Allocatable.StorageEphemeral().Value()
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			out.ready = cond.Status == corev1.ConditionTrue
		}
	}
	out.closed = d.choice.closed(n, out.ready)
	out.labels = c.labelsOf(n.Labels)
	return out
}
