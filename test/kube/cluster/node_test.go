//go:build kube

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const space = metav1.NamespaceDefault

// job makes a Job of one pod, at a node, whose container is as a test wants it.
func job(t *testing.T, node, name string, container corev1.Container, more ...func(*corev1.PodSpec)) {
	t.Helper()
	var never int32
	container.Name = "task"
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container},
		NodeSelector: map[string]string{corev1.LabelHostname: node},
	}
	for _, m := range more {
		m(&spec)
	}
	_, err := plane.Client().BatchV1().Jobs(space).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{BackoffLimit: &never, Template: corev1.PodTemplateSpec{Spec: spec}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func shell(script string) corev1.Container {
	return corev1.Container{Image: Image, Command: []string{"/bin/sh", "-c", script}}
}

// pod waits until the Job's pod is as it should be.
func pod(t *testing.T, job, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var last *corev1.Pod
	await(t, job+" "+what, func() error {
		list, err := plane.Client().CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d pods", len(list.Items))
		}
		if last = &list.Items[0]; !is(last) {
			return fmt.Errorf("its status is %+v", last.Status)
		}
		return nil
	})
	return last
}

// ended waits for the end of the Job's container.
func ended(t *testing.T, job string) (*corev1.Pod, *corev1.ContainerStateTerminated) {
	t.Helper()
	p := pod(t, job, "has ended", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Terminated != nil
	})
	return p, p.Status.ContainerStatuses[0].State.Terminated
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func said(t *testing.T, pod string) string {
	t.Helper()
	b, err := plane.Client().CoreV1().Pods(space).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
	must(t, err)
	return string(b)
}

func await(t *testing.T, what string, cond func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, testbed.Await(ctx, what, cond))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node adds a real one to the shared cluster for one test.
func node(t *testing.T) *Node {
	t.Helper()
	n, err := plane.AddNode(t.Context(), strings.ToLower(t.Name()))
	must(t, err)
	t.Cleanup(func() { must(t, plane.RemoveNodes(context.Background(), n.Name)) })
	return n
}

// TestPodsRun on a kubelet: exit codes and their reasons, output, and the API
// server as a pod sees it.
func TestPodsRun(t *testing.T) {
	t.Parallel()
	n := node(t)
	t.Run("exit code", func(t *testing.T) {
		job(t, n.Name, "exits", shell("echo out; exit 3"))
		p, end := ended(t, "exits")
		if end.ExitCode != 3 || said(t, p.Name) != "out\n" {
			t.Errorf("exit %d, %q", end.ExitCode, said(t, p.Name))
		}
	})
	t.Run("processes", func(t *testing.T) {
		job(t, n.Name, "forks", shell(fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done", PodPids)))
		if p, end := ended(t, "forks"); end.ExitCode == 0 || !strings.Contains(said(t, p.Name), "can't fork") {
			t.Errorf("exit %d, %q, want no more than %d processes", end.ExitCode, said(t, p.Name), PodPids)
		}
	})
	t.Run("out of memory", func(t *testing.T) {
		greedy := shell("dd if=/dev/zero of=/dev/null bs=200M count=1")
		greedy.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
		job(t, n.Name, "greedy", greedy)
		if _, end := ended(t, "greedy"); end.Reason != "OOMKilled" {
			t.Errorf("it ended by %s: %s", end.Reason, end.Message)
		}
	})
	t.Run("no image", func(t *testing.T) {
		job(t, n.Name, "absent", corev1.Container{Image: "127.0.0.1:1/absent:1"})
		pod(t, "absent", "waits for its image", func(p *corev1.Pod) bool {
			s := p.Status.ContainerStatuses
			return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "ErrImagePull"
		})
	})
	t.Run("the API from inside", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "probe")
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./probe")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		must(t, n.ImportProgram(t.Context(), "cloudshare.test/probe:1", program))
		_, err := plane.ServiceAccount(t.Context(), space, "reader",
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
		must(t, err)
		for path, want := range map[string]string{"pods": "200 OK\n", "secrets": "403 Forbidden\n"} {
			job(t, n.Name, "asks-"+path, corev1.Container{Image: "cloudshare.test/probe:1", Args: []string{"/api/v1/namespaces/default/" + path}},
				func(s *corev1.PodSpec) { s.ServiceAccountName = "reader" })
			if p, _ := ended(t, "asks-"+path); said(t, p.Name) != want {
				t.Errorf("%s: %s", path, said(t, p.Name))
			}
		}
	})
}

// TestKubeletKilled: what runs goes on, and its end is told afterwards.
func TestKubeletKilled(t *testing.T) {
	t.Parallel()
	n := node(t)
	job(t, n.Name, "goes-on", shell("sleep 4; exit 7"))
	pod(t, "goes-on", "runs", running)
	n.Kubelet.Kill()
	if got := n.Runs(); len(got) == 0 {
		t.Error("the pod ended with the kubelet")
	}
	must(t, n.Kubelet.Start(t.Context()))
	if _, end := ended(t, "goes-on"); end.ExitCode != 7 {
		t.Errorf("exit %d", end.ExitCode)
	}
}

// TestNodeVanishes: nothing of it runs on, it is soon not ready, and its pods
// are deleted; with nobody there who could confirm that, they stay so.
func TestNodeVanishes(t *testing.T) {
	t.Parallel()
	n := node(t)
	fakes(t, 1) // where every node is silent, Kubernetes blames itself
	job(t, n.Name, "unlucky", shell("sleep 1000"))
	pod(t, "unlucky", "runs", running)
	began := time.Now()
	n.Vanish()
	if got := n.Runs(); len(got) > 0 {
		t.Errorf("these run on: %s", strings.Join(got, "; "))
	}
	must(t, plane.AwaitNodes(t.Context(), map[string]bool{n.Name: false}))
	t.Logf("not ready after %s", time.Since(began))
	pod(t, "unlucky", "is deleted", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	t.Logf("its pods deleted after %s", time.Since(began))
}
