//go:build kube

package kube_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// pods are those that a watch has shown of a handler's namespace.
type pods struct {
	mu sync.Mutex
	// made are all, taken those that a node took.
	made, taken map[string]bool
}

// watchPods notes them from now on.
func (r *rig) watchPods() *pods {
	r.Helper()
	w, err := r.c.Client().CoreV1().Pods(r.cfg.Namespace).Watch(r.Context(), metav1.ListOptions{})
	r.Must(err)
	r.Cleanup(w.Stop)
	p := &pods{made: map[string]bool{}, taken: map[string]bool{}}
	go func() {
		for e := range w.ResultChan() {
			p.note(e.Object)
		}
	}()
	return p
}

func (p *pods) note(o runtime.Object) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[pod.Name] = true
	if pod.Spec.NodeName != "" {
		p.taken[pod.Name] = true
	}
}

// only waits until a pod of those attempts was placed: no other may have been. It returns how many were made.
func (r *rig) only(p *pods, ids ...executor.ID) int {
	r.Helper()
	var made, taken []string
	r.await(fmt.Sprint("a pod of ", ids), func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		made, taken = slices.Collect(maps.Keys(p.made)), slices.Collect(maps.Keys(p.taken))
		if len(taken) == 0 {
			return fmt.Errorf("none of %d was placed", len(made))
		}
		return nil
	})
	for _, pod := range taken {
		if !slices.ContainsFunc(ids, func(id executor.ID) bool {
			return strings.Contains(pod, strings.ReplaceAll(id.String(), ".", "-"))
		}) {
			r.Errorf("%s was placed after its attempt was given up", pod)
		}
	}
	return len(made)
}

// TestControllersStandStill: Kubernetes makes no pods. What waits for them is given up,
// and told as what has not run, at once; when the controllers go on, they may still make
// the pods of Jobs that are gone, and none of them runs.
func TestControllersStandStill(t *testing.T) {
	onOwn.enter(t)
	c := cluster.Start(t)
	if _, err := c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "100", Memory: "64Gi"}); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, c)
	cfg.StartLimit, cfg.PlaceWait = 4*time.Second, 100*time.Millisecond
	r := open(t, c, cfg)
	r.cores("kube/fake-1", 70)
	shown := r.watchPods()
	c.Controllers.Signal(syscall.SIGSTOP)
	defer c.Controllers.Signal(syscall.SIGCONT)
	var ids []executor.ID
	for range 30 {
		ids = append(ids, r.Begin(r.task("FAKE_RUNS=forever")))
	}
	for _, id := range ids {
		if res := r.AwaitEnd(id); res.Cause != executor.Stopped || !strings.Contains(res.Detail, "to make its pod") {
			t.Fatalf("got %+v, want a loss of what has not run", res)
		}
	}
	late := []executor.ID{r.Begin(r.task())}
	c.Controllers.Signal(syscall.SIGCONT)
	// The controllers work again. What they have missed may have them take a pod away first, which is a loss.
	res := r.AwaitEnd(late[0])
	for n := 0; n < 5 && res.Cause == executor.Vanished; n++ {
		late = append(late, r.Begin(r.task()))
		res = r.AwaitEnd(late[len(late)-1])
	}
	if res.Cause != executor.Exited {
		t.Errorf("got %+v", res)
	}
	r.noJobs()
	t.Logf("%d pods were made", r.only(shown, late...))
}

// TestStopBeforeItsPod: a stop of what waits for its pod ends it at once; a start that
// hangs on the API server is no exception.
func TestStopBeforeItsPod(t *testing.T) {
	onOwn.enter(t)
	c := cluster.Start(t)
	if _, err := c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, c)
	cfg.CallTimeout, cfg.PlaceWait = 3*time.Second, 100*time.Millisecond
	r := open(t, c, cfg)
	r.cores("kube/fake-1", 7)
	shown := r.watchPods()
	c.Controllers.Signal(syscall.SIGSTOP)
	c.APIServer.Signal(syscall.SIGSTOP)
	task := r.task("FAKE_RUNS=forever")
	if err := r.Start(t.Context(), task); err != nil && !errors.Is(err, executor.ErrBusy) {
		t.Error(err)
	}
	r.Must(r.Stop(t.Context(), task.ID, "test"))
	if res := r.AwaitEnd(task.ID); res.Cause != executor.Stopped {
		t.Errorf("got %+v", res)
	}
	c.APIServer.Signal(syscall.SIGCONT)
	c.Controllers.Signal(syscall.SIGCONT)
	r.cores("kube/fake-1", 7)
	late := r.Begin(r.task())
	r.AwaitEnd(late)
	r.noJobs()
	r.only(shown, late)
}
