//go:build kube

package kube_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// await waits until something outside is so.
func (r *rig) await(what string, f func() error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	r.Must(testbed.Await(ctx, what, f))
}

// noJobs waits until nothing is left in the handler's namespace.
func (r *rig) noJobs() {
	r.Helper()
	r.await("nothing is left", func() error {
		pods, err := r.c.Client().CoreV1().Pods(r.cfg.Namespace).List(r.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if n := r.jobs() + len(pods.Items); n > 0 {
			return errors.New("Jobs or pods are left")
		}
		return nil
	})
}

// counted waits until a quota is in force.
func (r *rig) counted(get func(context.Context, string, metav1.GetOptions) (*corev1.ResourceQuota, error)) {
	r.Helper()
	r.await("the quota counts", func() error {
		q, err := get(r.Context(), "limit", metav1.GetOptions{})
		if err == nil && len(q.Status.Hard) == 0 {
			err = errors.New("it does not count yet")
		}
		return err
	})
}

// rights of executor/kube/DESIGN.md.
var (
	rights = []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
	}
	clusterRights = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
)

// TestRights: those of DESIGN.md are enough; without them the handler offers
// nothing and says what lacks; with all but one it hands tasks back.
func TestRights(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	path, err := shared.ServiceAccount(t.Context(), cfg.Namespace, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	none := cfg
	none.Cluster = path
	r := open(t, shared, none)
	if s := r.Status(); len(r.Capacity()) > 0 || !strings.Contains(s, "forbidden") || !strings.Contains(s, "guide operator") {
		t.Errorf("without rights: %v, %s", r.Capacity(), s)
	}
	if err = r.Start(t.Context(), r.task()); !errors.Is(err, executor.ErrBusy) || strings.Contains(err.Error(), "\n") {
		t.Errorf("without rights: got %v, want ErrBusy in one line", err)
	}
	r.Must(shared.ClusterRights(t.Context(), cfg.Namespace, "nobody", clusterRights...))
	r.Must(r.Close())

	enough := cfg
	enough.Dir += "-2"
	if enough.Cluster, err = shared.ServiceAccount(t.Context(), cfg.Namespace, "broker", rights...); err != nil {
		t.Fatal(err)
	}
	r.Must(shared.ClusterRights(t.Context(), cfg.Namespace, "broker", clusterRights...))
	r = open(t, shared, enough)
	r.cores("kube/fake-1", 7)
	if res := r.AwaitEnd(r.Begin(r.task("FAKE_EXIT=3"))); res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}

	lacks := cfg
	lacks.Dir += "-3"
	if lacks.Cluster, err = shared.ServiceAccount(t.Context(), cfg.Namespace, "watcher", append(rights[1:], rbacv1.PolicyRule{
		APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch"},
	})...); err != nil {
		t.Fatal(err)
	}
	r.Must(shared.ClusterRights(t.Context(), cfg.Namespace, "watcher", clusterRights...))
	r = open(t, shared, lacks)
	r.cores("kube/fake-1", 7)
	err = r.Start(t.Context(), r.task())
	if err == nil || errors.Is(err, executor.ErrBusy) || errors.Is(err, executor.ErrUnfit) ||
		!strings.Contains(err.Error(), "forbidden") {
		t.Errorf("without the right to make Jobs: got %v, want the site's own trouble", err)
	}
}

// TestNamespaceGoes: nothing can be made there, and the reason is Kubernetes'.
func TestNamespaceGoes(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	cfg.Namespace = "never-made"
	r := open(t, shared, cfg)
	if err := r.Start(t.Context(), r.task()); err == nil || errors.Is(err, executor.ErrUnfit) ||
		!strings.Contains(err.Error(), "never-made") {
		t.Errorf("got %v, want what lacks", err)
	}
}

// TestExpired: a certificate runs out under the handler.
func TestExpired(t *testing.T) {
	onShared.enter(t)
	cfg := config(t, shared)
	path, err := shared.Certificate("brief", 8*time.Second, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Cluster = path
	r := open(t, shared, cfg)
	r.cores("kube/fake-1", 7)
	id := r.Begin(r.task("FAKE_RUNS=2s"))
	<-time.After(9 * time.Second)
	if err = r.Start(t.Context(), r.task()); err == nil {
		t.Error("expired credentials made a Job")
	}
	r.cores("kube/fake-1", 0)
	if s := r.Status(); !strings.Contains(s, "credentials are expired") {
		t.Errorf("status %q does not say so", s)
	}
	r.Must(r.Close())
	r.cfg.Cluster = shared.Kubeconfig()
	for _, st := range r.Open() {
		if st.ID == id && st.Running {
			r.AwaitEnd(id)
		}
	}
	if res := r.AwaitEnd(r.Begin(r.task())); res.Cause != executor.Exited {
		t.Errorf("with new ones: got %+v", res)
	}
	r.noJobs()
}

// TestServerAway: while the API server is dead nothing is offered or begun; what
// ended meanwhile is told when it is back.
func TestServerAway(t *testing.T) {
	onOwn.enter(t)
	c := cluster.Start(t)
	if _, err := c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		t.Fatal(err)
	}
	r := open(t, c, config(t, c))
	r.cores("kube/fake-1", 7)
	brief, long := r.Begin(r.task("FAKE_RUNS=3s")), r.Begin(r.task("FAKE_RUNS=forever"))
	r.AwaitRunning(brief)
	r.AwaitRunning(long)
	c.APIServer.Kill()
	r.cores("kube/fake-1", 0)
	if err := r.Start(t.Context(), r.task()); !errors.Is(err, executor.ErrBusy) || !strings.Contains(r.Status(), "refused") {
		t.Errorf("got %v; %s", err, r.Status())
	}
	r.Must(r.Close())
	if states := r.Open(); len(states) != 2 || !states[0].Running || !states[1].Running {
		t.Errorf("adopted %+v without a server, want both", states)
	}
	r.Must(c.APIServer.Start(t.Context()))
	r.cores("kube/fake-1", 7)
	if res := r.AwaitEnd(brief); res.ExitCode != 0 || res.Cause != executor.Exited {
		t.Errorf("got %+v", res)
	}
	if res := r.AwaitEnd(r.Begin(r.task())); res.Cause != executor.Exited {
		t.Errorf("got %+v", res)
	}

	// One that hangs: it is not known what became of the request.
	c.APIServer.Signal(syscall.SIGSTOP)
	task := r.task()
	r.Must(r.Start(t.Context(), task))
	c.APIServer.Signal(syscall.SIGCONT)
	if res := r.AwaitEnd(task.ID); res.Cause != executor.Exited || res.ExitCode != 0 {
		t.Errorf("got %+v, want one run", res)
	}
	r.Must(r.Stop(t.Context(), long, "test"))
	r.AwaitEnd(long)
	r.noJobs()
}

// TestFromOutside: Jobs and pods that others remove.
func TestFromOutside(t *testing.T) {
	onShared.enter(t)
	r := open(t, shared, config(t, shared))
	client := r.c.Client()
	job := func(id executor.ID) string {
		t.Helper()
		list, err := client.BatchV1().Jobs(r.cfg.Namespace).List(t.Context(), metav1.ListOptions{})
		r.Must(err)
		for _, j := range list.Items {
			if j.Annotations["cloudshare/attempt-name"] == id.String() {
				return j.Name
			}
		}
		t.Fatalf("no Job of %s", id)
		return ""
	}
	a, b := r.Begin(r.task("FAKE_RUNS=forever")), r.Begin(r.task("FAKE_RUNS=forever"))
	r.AwaitRunning(a)
	r.AwaitRunning(b)
	behind := metav1.DeletePropagationBackground
	r.Must(client.BatchV1().Jobs(r.cfg.Namespace).Delete(t.Context(), job(a),
		metav1.DeleteOptions{PropagationPolicy: &behind}))
	r.Must(client.CoreV1().Pods(r.cfg.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "job-name=" + job(b)}))
	for _, id := range []executor.ID{a, b} {
		if res := r.AwaitEnd(id); res.Cause != executor.Vanished && res.Cause != executor.Stopped ||
			!strings.Contains(res.Detail, "lost") {
			t.Errorf("got %+v, want a loss", res)
		}
	}
	r.noJobs()
}
