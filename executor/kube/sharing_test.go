//go:build kube

package kube_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cloudshare/cloudshare/executor"
)

// other is a pod of somebody else on a node, with these requests; it is gone when
// the returned function is called.
func (r *rig) other(node, cpu, memory string) func() {
	r.Helper()
	pods := r.c.Client().CoreV1().Pods("default")
	p, err := pods.Create(r.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "c", Image: "example.org/other:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			}},
		}}},
	}, metav1.CreateOptions{})
	r.Must(err)
	return func() {
		r.Helper()
		zero := int64(0)
		r.Must(pods.Delete(r.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	}
}

// patchNode changes a fake node.
func (r *rig) patchNode(name, patch string) {
	r.Helper()
	_, err := r.c.Client().CoreV1().Nodes().Patch(r.Context(), name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	r.Must(err)
}

// jobs of a handler's namespace.
func (r *rig) jobs() int {
	r.Helper()
	list, err := r.c.Client().BatchV1().Jobs(r.cfg.Namespace).List(r.Context(), metav1.ListOptions{})
	r.Must(err)
	return len(list.Items)
}

// TestSharing: what others request, cordons and taints shrink the offer, and what
// is ours does not.
func TestSharing(t *testing.T) {
	onShared.enter(t)
	r := open(t, shared, config(t, shared))
	r.cores("kube/fake-1", 7)
	gone := r.other("fake-1", "2500m", "1Gi")
	r.cores("kube/fake-1", 4) // ⌊7 − 2.5⌋
	id := r.Begin(r.task("FAKE_RUNS=forever"))
	r.AwaitRunning(id)
	big := r.task()
	big.Need.MilliCPU = 4000
	if err := r.Start(t.Context(), big); !errors.Is(err, executor.ErrBusy) || !strings.Contains(err.Error(), "3500 milli-cores") &&
		!strings.Contains(err.Error(), "3000 milli-cores") {
		t.Errorf("beside an own task and others': got %v, want ErrBusy with what is left", err)
	}
	gone()
	r.cores("kube/fake-1", 7)
	r.patchNode("fake-1", `{"spec":{"unschedulable":true}}`)
	r.cores("kube/fake-1", 0)
	if err := r.Start(t.Context(), r.task()); !errors.Is(err, executor.ErrBusy) || !strings.Contains(err.Error(), "cordoned") {
		t.Errorf("on a cordoned node: got %v, want ErrBusy that says so", err)
	}
	r.patchNode("fake-1", `{"spec":{"unschedulable":null}}`)
	r.cores("kube/fake-1", 7)
	r.patchNode("fake-1", `{"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}}`)
	r.cores("kube/fake-1", 0)
	r.patchNode("fake-1", `{"spec":{"taints":null}}`)
	r.cores("kube/fake-1", 7)
}

// TestSelected: only nodes with the label, and a tolerated taint is no hindrance.
func TestSelected(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	cfg.NodeSelector, cfg.Tolerations = []string{"kubernetes.io/hostname=fake-2"}, []string{"gpu=yes:NoSchedule"}
	r := open(t, shared, cfg)
	r.patchNode("fake-2", `{"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}}`)
	t.Cleanup(func() {
		_, _ = shared.Client().CoreV1().Nodes().Patch(t.Context(), "fake-2", types.StrategicMergePatchType, []byte(`{"spec":{"taints":null}}`),
			metav1.PatchOptions{})
	})
	if m := r.Capacity(); len(m) != 1 || m[0].Name != "kube/fake-2" {
		t.Errorf("got %v, want fake-2 alone", m)
	}
	task := r.task()
	task.Machine = "kube/fake-2"
	if res := r.AwaitEnd(r.Begin(task)); res.ExitCode != 0 || res.Cause != executor.Exited {
		t.Errorf("got %+v", res)
	}
	r.patchNode("fake-2", `{"spec":{"taints":null}}`)
}

// TestNodeLabels: those that are allowed are told, and each change of them.
func TestNodeLabels(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	cfg.NodeLabels = []string{"topology.kubernetes.io/zone", "kubernetes.io/os"}
	r := open(t, shared, cfg)
	told := func(want string) {
		t.Helper()
		r.Hear(want+" of fake-2", func() bool {
			return slices.ContainsFunc(r.Capacity(), func(m executor.Machine) bool {
				return m.Name == "kube/fake-2" &&
					m.Labels == want
			})
		})
	}
	told("kubernetes.io/os=linux")
	r.patchNode("fake-2", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"z1","secret":"x"}}}`)
	told("kubernetes.io/os=linux,topology.kubernetes.io/zone=z1")
	r.patchNode("fake-2", `{"metadata":{"labels":{"topology.kubernetes.io/zone":null,"secret":null}}}`)
	told("kubernetes.io/os=linux")
}

// TestOthersFaster: what Kubernetes' scheduler cannot place is declined with its
// reason, and nothing of it is left.
func TestOthersFaster(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	cfg.Dedicated = true // so the handler does not see the others
	r := open(t, shared, cfg)
	gone := r.other("fake-1", "8", "1Gi")
	defer gone()
	task := r.task("FAKE_RUNS=forever")
	task.Need.MilliCPU = 4000
	if err := r.Start(t.Context(), task); !errors.Is(err, executor.ErrBusy) || !strings.Contains(err.Error(), "Insufficient cpu") {
		t.Errorf("got %v, want ErrBusy with the scheduler's reason", err)
	}
	r.noJobs()
}

// TestQuota of the namespace, on Jobs and on pods: declined with Kubernetes' words.
func TestQuota(t *testing.T) {
	onShared.enter(t)
	r := open(t, shared, config(t, shared))
	quotas := r.c.Client().CoreV1().ResourceQuotas(r.cfg.Namespace)
	for what, limit := range map[string]string{"count/jobs.batch": "0", "requests.cpu": "500m"} {
		_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "limit"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				corev1.ResourceName(what): resource.MustParse(limit),
			}},
		}, metav1.CreateOptions{})
		r.Must(err)
		r.counted(quotas.Get)
		if err := r.Start(t.Context(), r.task()); !errors.Is(err, executor.ErrBusy) ||
			!strings.Contains(err.Error(), "exceeded quota") {
			t.Errorf("%s: got %v, want ErrBusy with the quota", what, err)
		}
		r.Must(quotas.Delete(t.Context(), "limit", metav1.DeleteOptions{}))
	}
	r.noJobs()
	if len(r.Capacity()) == 0 {
		t.Error("a quota took the whole cluster out of the offer")
	}
}
