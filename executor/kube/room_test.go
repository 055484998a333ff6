package kube

import (
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
)

func sized(milli, mem, gpu, pods int64) amounts {
	return amounts{Resources: executor.Resources{MilliCPU: milli, MemMiB: mem, GPU: gpu}, pods: pods}
}

// TestExposed: max(0, ⌊0.7·allocatable⌋ − others), whole cores, steps of memory.
func TestExposed(t *testing.T) {
	for name, c := range map[string]struct {
		has, others amounts
		threshold   int
		want        executor.Resources
	}{
		"empty": {
			sized(10_000, 10_000, 10, 110), sized(0, 0, 0, 0), 30,
			executor.Resources{MilliCPU: 7000, MemMiB: 6976, GPU: 7},
		},
		"used": {
			sized(10_000, 10_000, 10, 110), sized(2500, 3000, 2, 9), 30,
			executor.Resources{MilliCPU: 4000, MemMiB: 3968, GPU: 5},
		},
		"within the 30 %": {sized(10_000, 10_000, 0, 110), sized(7000, 0, 0, 9), 30, executor.Resources{MemMiB: 6976}},
		"overcommitted":   {sized(10_000, 1000, 1, 110), sized(99_000, 9999, 9, 9), 30, executor.Resources{}},
		"all of it": {
			sized(3900, 1024, 4, 110), sized(0, 0, 0, 0), -1,
			executor.Resources{MilliCPU: 3000, MemMiB: 1024, GPU: 4},
		},
		"no pods to be had":  {sized(10_000, 64, 0, 10), sized(0, 0, 0, 10), 30, executor.Resources{}},
		"few pods to be had": {sized(10_000, 64, 0, 10), sized(0, 0, 0, 7), -1, executor.Resources{MilliCPU: 3000, MemMiB: 64}},
	} {
		if got := exposed(c.has, c.others, c.threshold); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40)
		has, others := sized(n.Draw(t, "cpu"), n.Draw(t, "mem"), n.Draw(t, "gpu"), n.Draw(t, "pods")),
			sized(n.Draw(t, "c"), n.Draw(t, "m"), n.Draw(t, "g"), 0)
		r := exposed(has, others, 30)
		if r.MilliCPU < 0 || r.MilliCPU%1000 != 0 || (r.MilliCPU > 0 &&
			r.MilliCPU+others.MilliCPU > has.MilliCPU*7/10) || r.MemMiB < 0 {
			t.Fatalf("%+v of %+v beside %+v", r, has, others)
		}
	})
}

func asks(cpu, mem string) corev1.Container {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if mem != "" {
		l[corev1.ResourceMemory] = resource.MustParse(mem)
	}
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: l}}
}

// TestRequests counts a pod as the scheduler does.
func TestRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := asks("500m", "10Mi")
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		pod  corev1.PodSpec
		want amounts
	}{
		"none": {corev1.PodSpec{Containers: []corev1.Container{asks("", "")}}, sized(0, 0, 0, 1)},
		"two":  {corev1.PodSpec{Containers: []corev1.Container{asks("1", "100Mi"), asks("250m", "1")}}, sized(1250, 101, 0, 1)},
		"a large first": {
			corev1.PodSpec{InitContainers: []corev1.Container{asks("4", "")}, Containers: []corev1.Container{asks("1", "100Mi")}},
			sized(4000, 100, 0, 1),
		},
		"a sidecar": {corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar, asks("1", "")},
			Containers:     []corev1.Container{asks("1", "")},
		}, sized(1500, 10, 0, 1)},
		"its overhead": {corev1.PodSpec{
			Containers: []corev1.Container{asks("1", "")},
			Overhead:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}, sized(1100, 0, 0, 1)},
	} {
		if got := (Config{}).withDefaults().requests(&c.pod); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// TestTooManyKinds: labels that tell each node apart are no kinds; an offer holds only so
// many.
func TestTooManyKinds(t *testing.T) {
	list := make([]executor.Machine, maxKinds+1)
	for i := range list {
		list[i].Labels = "host=" + strconv.Itoa(i)
	}
	if n := withoutLabels(list[1:]); n != 0 || list[1].Labels == "" {
		t.Errorf("%d kinds are too many", n)
	}
	if n := withoutLabels(list); n != maxKinds+1 || list[0].Labels != "" || list[maxKinds].Labels != "" {
		t.Errorf("of %d kinds, %q is left", n, list[0].Labels)
	}
}

// TestNodes: which of them are used, and why not.
func TestNodes(t *testing.T) {
	h := bare(t, Config{NodeSelector: []string{"pool=lent"}, Tolerations: []string{"lent:NoSchedule", "spot=yes"}})
	ready := func(status corev1.ConditionStatus) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}
	}
	good := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "lent"}},
		Status:     ready(corev1.ConditionTrue),
	}
	for want, change := range map[string]func(*corev1.Node){
		"": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{
				Key: "lent", Value: "x",
				Effect: "NoSchedule",
			}}
		},
		"is not ready":                 func(n *corev1.Node) { n.Status = ready(corev1.ConditionUnknown) },
		"is cordoned":                  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"has no label pool=lent":       func(n *corev1.Node) { n.Labels = nil },
		"is tainted lent=x:NoExecute":  func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "lent", Value: "x", Effect: "NoExecute"}} },
		"is tainted spot=no:NoExecute": func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "spot", Value: "no", Effect: "NoExecute"}} },
	} {
		n := good.DeepCopy()
		change(n)
		if got := h.decoder.node(n).closed; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	h.cfg.NodeLabels = []string{"zone", "type", "none"}
	typed := good.DeepCopy()
	typed.Labels = map[string]string{"pool": "lent", "zone": "z1", "type": ""}
	if got := h.decoder.node(typed).labels; got != "type=,zone=z1" {
		t.Errorf("labels %q", got)
	}
	for name, task := range map[string]executor.Task{
		"no image": {Need: executor.Resources{MilliCPU: 1}}, "too big": {Image: "a", Need: executor.Resources{MilliCPU: 5000}},
		"no such GPU": {Image: "a", Need: executor.Resources{MilliCPU: 1, GPU: 1}}, "negative": {Image: "a", Need: executor.Resources{MemMiB: -1}},
	} {
		if err := checkFit(task, &node{has: sized(4000, 100, 0, 10)}); !errors.Is(err, executor.ErrUnfit) {
			t.Errorf("%s: got %v, want ErrUnfit", name, err)
		}
	}
	if err := checkFit(executor.Task{Image: "a"}, nil); !errors.Is(err, executor.ErrUnfit) {
		t.Errorf("no such node: got %v", err)
	}
}
