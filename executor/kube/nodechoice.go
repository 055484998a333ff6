package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// nodeChoice is which nodes are used, as Kubernetes takes it: of NodeSelector and Tolerations.
type nodeChoice struct {
	labels      map[string]string
	tolerations []corev1.Toleration
}

// newNodeChoice reads a configuration that Validate has seen.
func newNodeChoice(c Config) *nodeChoice {
	n := &nodeChoice{}
	n.labels, _ = c.selector()
	n.tolerations, _ = c.tolerations()
	return n
}

// closed says why the node takes none of ours.
func (c *nodeChoice) closed(n *corev1.Node, ready bool) string {
	switch {
	case !ready:
		return "is not ready"
	case n.Spec.Unschedulable:
		return "is cordoned"
	case len(machineOf(n.Name)) > maxMachineName:
		return "has too long a name"
	}
	for k, v := range c.labels {
		if has, ok := n.Labels[k]; !ok || has != v {
			return fmt.Sprintf("has no label %s=%s", k, v)
		}
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !c.tolerates(taint) {
			return "is tainted " + taint.ToString()
		}
	}
	return ""
}

// maxMachineName is the federation's.
const maxMachineName = 128

// tolerates reports whether tasks may go on a node with that taint.
func (c *nodeChoice) tolerates(taint corev1.Taint) bool {
	return slices.ContainsFunc(c.tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" && t.Operator == corev1.TolerationOpExists ||
			t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value))
	})
}
