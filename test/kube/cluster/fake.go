package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// stages say what kwok plays: see AddFakeNodes.
//
//go:embed stages.yaml
var stages []byte

// fakeNode marks the nodes that kwok plays: a real one is none of its business.
const fakeNode = "kwok.x-k8s.io/node"

// Size of a node, in Kubernetes' own quantities.
type Size struct{ CPU, Memory string }

// AddFakeNodes adds n nodes, which are there only in the API, waits until they are
// ready and returns their names: fake-1 and so on, none of them twice. A pod there runs nothing and ends as its first
// container's environment says:
//
//	FAKE_RUNS=2s     it ends after that long (a Go duration); without it, at once; "forever" never
//	FAKE_EXIT=42     its exit code; without it 0
//
// A deleted pod is gone at once, with its finalizers: its Job has not counted it then,
// and has another made within a second. Their heartbeats end with Kwok's process.
func (c *Cluster) AddFakeNodes(ctx context.Context, n int, size Size) ([]string, error) {
	if err := c.startKwok(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	first := c.fakes + 1
	c.fakes += n
	c.mu.Unlock()
	names, ready := make([]string, 0, n), make(map[string]bool, n)
	for i := first; i < first+n; i++ {
		name := "fake-" + strconv.Itoa(i)
		names, ready[name] = append(names, name), true
		if err := c.addFakeNode(ctx, name, size); err != nil {
			return nil, err
		}
	}
	return names, c.AwaitNodes(ctx, ready)
}

func (c *Cluster) addFakeNode(ctx context.Context, name string, size Size) error {
	cpu, err := resource.ParseQuantity(size.CPU)
	if err != nil {
		return fmt.Errorf("read the CPUs of a node: %w", err)
	}
	memory, err := resource.ParseQuantity(size.Memory)
	if err != nil {
		return fmt.Errorf("read the memory of a node: %w", err)
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory,
		corev1.ResourcePods: resource.MustParse("10000"),
	}
	_, err = c.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{fakeNode: "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make node %s: %w", name, err)
	}
	return nil
}

// AwaitNodes waits until the named nodes are all as ready as they should be.
func (c *Cluster) AwaitNodes(ctx context.Context, ready map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return testbed.Await(ctx, "nodes", func() error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		missing := len(ready)
		for _, n := range list.Items {
			if want, ok := ready[n.Name]; ok && isReady(&n) == want {
				missing--
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d nodes are not yet as they should be", missing, len(ready))
		}
		return nil
	})
}

// isReady: pods may go there, too; the mark of a node that is not ready stays a
// moment longer than that.
func isReady(n *corev1.Node) bool {
	marked := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue && !marked
		}
	}
	return false
}

// Kwok returns the process that plays the fake nodes; nil before the first of them.
func (c *Cluster) Kwok() *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kwok
}

func (c *Cluster) startKwok(ctx context.Context) error {
	if c.Kwok() != nil {
		return nil
	}
	if err := os.WriteFile(c.path("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	p, err := c.process("kwok", "kwok", "--kubeconfig="+c.Kubeconfig(), "--config="+c.path("stages.yaml"), "--node-ip=127.0.0.1",
		"--server-address=", "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector="+fakeNode+"=fake", "--node-lease-duration-seconds=4")
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.kwok = p
	c.mu.Unlock()
	return p.Start(ctx)
}
