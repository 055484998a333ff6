package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cloudshare/cloudshare/executor"
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

// Bounds of nodes' labels: a machine of the federation has 32 of them, with keys of
// at most 128 bytes, and an offer a thousand different sets.
const (
	maxNodeLabels = 16
	maxLabelKey   = 128
	maxKinds      = 500
)

// implied are the labels that every machine of a site has anyhow.
var implied = []string{"handler", "site"}

func (c Config) validateNodeLabels() error {
	if len(c.NodeLabels) > maxNodeLabels {
		return fmt.Errorf("kube: node_labels has %d keys; at most %d", len(c.NodeLabels), maxNodeLabels)
	}
	for i, key := range c.NodeLabels {
		switch wrong := validation.IsQualifiedName(key); {
		case len(wrong) > 0:
			return fmt.Errorf("kube: node_labels %.140q: must be the key of a label of nodes, such as topology.kubernetes.io/zone", key)
		case len(key) > maxLabelKey:
			return fmt.Errorf("kube: node_labels %.140q: has %d bytes; at most %d", key, len(key), maxLabelKey)
		case slices.Contains(implied, key):
			return fmt.Errorf("kube: node_labels %q: every machine has a label of that name already", key)
		case slices.Contains(c.NodeLabels[:i], key):
			return fmt.Errorf("kube: node_labels %q: is there twice", key)
		}
	}
	return nil
}

// labelsOf returns those of a node that jobs may select by.
func (c Config) labelsOf(all map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(slices.Values(c.NodeLabels)) {
		if value, ok := all[key]; ok {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, ",")
}

// withoutLabels takes all labels off machines of too many kinds, and returns how many
// these are; 0 = not too many. Only some of them would have jobs go where the others are
// better.
func withoutLabels(list []executor.Machine) int {
	kinds := map[string]bool{}
	for _, m := range list {
		kinds[m.Labels] = true
	}
	if len(kinds) <= maxKinds {
		return 0
	}
	for i := range list {
		list[i].Labels = ""
	}
	return len(kinds)
}
