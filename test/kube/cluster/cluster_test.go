//go:build kube

package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// plane is shared by the tests that break nothing for the others.
var plane *Cluster

func TestMain(m *testing.M) {
	c, err := New(context.Background())
	if err != nil {
		panic(err)
	}
	plane = c
	code := m.Run()
	if code != 0 {
		fmt.Println(c.Logs(15))
	}
	if err = c.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// TestAPIServerKilled: it comes back at its address with its data, and a test sees
// what it said.
func TestAPIServerKilled(t *testing.T) {
	t.Parallel()
	c := Start(t)
	must(t, c.Namespace(t.Context(), "kept"))
	look := func() error {
		_, err := c.Client().CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
		return err
	}
	c.APIServer.Kill()
	if look() == nil {
		t.Error("a dead API server answers")
	}
	c.ETCD.Kill()
	must(t, c.ETCD.Start(t.Context()))
	must(t, c.APIServer.Start(t.Context()))
	must(t, look())
	must(t, c.Close())
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) || c.APIServer.Runs() {
		t.Errorf("Close left something: %v", err)
	}
}

// use makes a client of a kubeconfig.
func use(t *testing.T, path string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// pods lists a namespace's, as far as the client may.
func pods(t *testing.T, client *kubernetes.Clientset, namespace string) error {
	t.Helper()
	_, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	return err
}

// TestRights: accounts have what they were given, in their namespace, for as long
// as they and their credentials last.
func TestRights(t *testing.T) {
	c := plane
	path, err := c.ServiceAccount(t.Context(), "ours", "broker",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	must(t, err)
	broker := use(t, path)
	must(t, pods(t, broker, "ours"))
	if err = pods(t, broker, "default"); !apierrors.IsForbidden(err) {
		t.Errorf("in another namespace: %v", err)
	}
	if _, err = broker.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("nodes: %v", err)
	}
	must(t, c.ClusterRights(t.Context(), "ours", "broker",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}))
	await(t, "the right to list nodes", func() error {
		_, err := broker.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err
	})
	for valid, is := range map[time.Duration]func(error) bool{
		time.Hour:    apierrors.IsForbidden,
		-time.Second: apierrors.IsUnauthorized,
	} {
		path, err = c.Certificate("somebody", valid)
		must(t, err)
		if err = pods(t, use(t, path), "ours"); !is(err) {
			t.Errorf("a certificate valid for %s: %v", valid, err)
		}
	}
}

// fakes adds nodes to the shared cluster for one test.
func fakes(t *testing.T, n int) []string {
	t.Helper()
	names, err := plane.AddFakeNodes(t.Context(), n, Size{"4", "1Gi"})
	must(t, err)
	t.Cleanup(func() { must(t, plane.RemoveNodes(context.Background(), names...)) })
	return names
}

// TestFakeNodes: their pods end as their environment says, and they are lost
// when nobody plays them.
func TestFakeNodes(t *testing.T) {
	c := plane
	first := fakes(t, 2)
	fake := func(env ...string) corev1.Container {
		container := corev1.Container{Image: "none"}
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
		return container
	}
	job(t, first[1], "forever", fake("FAKE_RUNS=forever"))
	job(t, first[0], "at-once", fake())
	job(t, first[0], "fails", fake("OTHER=1", "FAKE_EXIT=42", "FAKE_RUNS=2s"))
	if p, end := ended(t, "at-once"); p.Status.Phase != corev1.PodSucceeded || end.ExitCode != 0 {
		t.Errorf("%s with exit %d", p.Status.Phase, end.ExitCode)
	}
	p, end := ended(t, "fails")
	if p.Status.Phase != corev1.PodFailed || end.ExitCode != 42 || end.Reason != "Error" {
		t.Errorf("%s with exit %d, %s", p.Status.Phase, end.ExitCode, end.Reason)
	}
	if ran := end.FinishedAt.Sub(end.StartedAt.Time); ran < 2*time.Second {
		t.Errorf("it ran for %s", ran)
	}
	fakes(t, 1)
	pod(t, "forever", "runs", running)
	c.Kwok().Kill()
	must(t, c.AwaitNodes(t.Context(), map[string]bool{first[0]: false, first[1]: false}))
	must(t, c.Kwok().Start(t.Context()))
	must(t, c.AwaitNodes(t.Context(), map[string]bool{first[0]: true, first[1]: true}))
}
