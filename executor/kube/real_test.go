//go:build kube

package kube_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// shell is a task of a real node.
func (r *rig) shell(script string) executor.Task {
	t := r.task()
	t.Machine, t.Image, t.Command = "kube/real-1", cluster.Image, []string{"/bin/sh", "-c", script}
	t.Need.MemMiB = 0
	return t
}

// TestReasons: how tasks end on a real kubelet, in Kubernetes' words.
func TestReasons(t *testing.T) {
	onReal.enter(t)
	c, _ := onReal.node(t)
	registry := engines.StartRegistry(t)
	cfg := realConfig(t, c)
	r := open(t, c, cfg)

	hog := r.shell("")
	hog.Command, hog.Need.MemMiB = []string{"tail", "-c", "200m", "/dev/zero"}, 32
	if res := r.AwaitEnd(r.Begin(hog)); res.Cause != executor.Exited || res.Signal != 9 ||
		!strings.Contains(res.Detail, "out of memory (limit 32Mi)") {
		t.Errorf("too much memory: got %+v", res)
	}
	literal := r.shell(`echo "$0 $COLOR"`)
	literal.Command = append(literal.Command, "$(HOME) $$ $(nothing")
	literal.Env = map[string]string{"COLOR": "$(HOME)$$"}
	id := r.Begin(literal)
	if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "$(HOME) $$ $(nothing $(HOME)$$\n" {
		t.Errorf("got %+v and %q, want all of it literally", res, r.Written(id, "stdout"))
	}
	fetched := r.shell("echo fetched")
	fetched.Image = registry.Image()
	if res := r.AwaitEnd(r.Begin(fetched)); res.Cause != executor.Exited || res.ExitCode != 0 {
		t.Errorf("an image to fetch: got %+v", res)
	}
	absent := r.shell("true")
	absent.Image = registry.Address + "/absent:1"
	if res := r.AwaitEnd(r.Begin(absent)); res.Cause != executor.NoStart || !strings.Contains(res.Detail, "/absent:1") {
		t.Errorf("an image that nobody has: got %+v, want NoStart that names it", res)
	}
	away := r.shell("true")
	away.Image = "127.0.0.1:1/task:1"
	id = r.Begin(away)
	if res := r.AwaitEnd(id); res.Cause != executor.Stopped || !strings.Contains(res.Detail, "127.0.0.1:1") ||
		!strings.Contains(r.Doing[id], "127.0.0.1:1") {
		t.Errorf("no registry: got %+v while %q, want a loss that says so", res, r.Doing[id])
	}
	r.noJobs()
}

// TestRegistryStalls in mid-pull: the task is given up at its start limit, which is told,
// and its end with what it waited for as soon as its kubelet, which fetches on, says so.
func TestRegistryStalls(t *testing.T) {
	onReal.enter(t)
	c, _ := onReal.node(t)
	registry := engines.StartRegistry(t)
	registry.Hold = make(chan struct{})
	goOn := sync.OnceFunc(func() { close(registry.Hold) })
	t.Cleanup(goOn) // it ends only when nobody is held
	cfg := realConfig(t, c)
	cfg.StartLimit = 12 * time.Second
	r := open(t, c, cfg)
	task := r.shell("true")
	task.Image = registry.Image()
	id := r.Begin(task)
	const why = "not within 12s: starting on node real-1"
	r.Hear("that it is given up", func() bool { return strings.Contains(r.Doing[id], why) })
	goOn()
	if res := r.AwaitEnd(id); res.Cause != executor.Stopped || !strings.Contains(res.Detail, why) {
		t.Errorf("got %+v, want a loss that says so", res)
	}
	again := r.shell("echo fetched")
	again.Image = task.Image
	if res := r.AwaitEnd(r.Begin(again)); res.Cause != executor.Exited || res.ExitCode != 0 {
		t.Errorf("when the registry is back: got %+v", res)
	}
	r.noJobs()
}

// TestNeverFetched: where nothing is fetched, an image that is not there fails.
func TestNeverFetched(t *testing.T) {
	onReal.enter(t)
	c, _ := onReal.node(t)
	cfg := realConfig(t, c)
	cfg.PullPolicy = "Never"
	r := open(t, c, cfg)
	task := r.shell("true")
	task.Image = "cloudshare.test/absent:1"
	if res := r.AwaitEnd(r.Begin(task)); res.Cause != executor.NoStart || !strings.Contains(res.Detail, "ErrImageNeverPull") {
		t.Errorf("got %+v, want NoStart", res)
	}
}

// TestStreams: a cluster that can tells stdout from stderr.
func TestStreams(t *testing.T) {
	onOwn.enter(t)
	gate := "--feature-gates=PodLogsQuerySplitStreams=true"
	c := cluster.Start(t, cluster.Flags("kube-apiserver", gate), cluster.Flags("kubelet", gate))
	if _, err := c.AddNode(t.Context(), "real-1"); err != nil {
		t.Fatal(err)
	}
	r := open(t, c, realConfig(t, c))
	id := r.Begin(r.shell("echo to out; echo to err >&2"))
	if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "to out\n" || r.Written(id, "stderr") != "to err\n" {
		t.Errorf("got %+v, %q and %q", res, r.Written(id, "stdout"), r.Written(id, "stderr"))
	}
}

// TestEvicted: a drain of the node ends tasks; that is a loss, not their failure.
func TestEvicted(t *testing.T) {
	onReal.enter(t)
	c, _ := onReal.node(t)
	r := open(t, c, realConfig(t, c))
	id := r.Begin(r.shell("sleep 1000"))
	r.AwaitRunning(id)
	pods := c.Client().CoreV1().Pods(r.cfg.Namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	r.Must(err)
	r.Must(pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: list.Items[0].Name}}))
	if res := r.AwaitEnd(id); res.Cause != executor.Stopped || !strings.Contains(res.Detail, "Evict") {
		t.Errorf("got %+v, want a loss by eviction", res)
	}
}

// TestKubeletAway: a kubelet that is restarted finds its pods, and their ends.
func TestKubeletAway(t *testing.T) {
	onReal.enter(t)
	c, n := onReal.node(t)
	r := open(t, c, realConfig(t, c))
	id := r.Begin(r.shell("echo up; sleep 3; echo down; exit 4"))
	r.AwaitRunning(id)
	n.Kubelet.Kill()
	r.Must(n.Kubelet.Start(t.Context()))
	if res := r.AwaitEnd(id); res.ExitCode != 4 || r.Written(id, "stdout") != "up\ndown\n" {
		t.Errorf("got %+v and %q", res, r.Written(id, "stdout"))
	}
}

// TestNodeVanishes in mid-task: another site's is told lost when Kubernetes gives
// its pod up, and nothing more is sent there. An own one may still run, for all
// that is known, until the node is removed.
func TestNodeVanishes(t *testing.T) {
	onOwn.enter(t)
	c := cluster.Start(t)
	n, err := c.AddNode(t.Context(), "real-1")
	if err != nil {
		t.Fatal(err)
	}
	// One that is left: with none Kubernetes takes itself for what is cut off.
	if _, err = c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "1", Memory: "1Gi"}); err != nil {
		t.Fatal(err)
	}
	r := open(t, c, realConfig(t, c))
	foreign := r.shell("sleep 1000")
	foreign.Timeout = time.Hour
	bound, _ := r.Handler.(executor.Bounded).Bound(foreign)
	foreign.Fence = executor.Boottime() + int64(bound+time.Minute)
	own := r.shell("sleep 1000")
	r.AwaitRunning(r.Begin(foreign))
	r.AwaitRunning(r.Begin(own))
	n.Vanish()
	if res := r.AwaitEnd(foreign.ID); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "real-1") {
		t.Errorf("got %+v, want Vanished that names the node", res)
	}
	r.cores("kube/real-1", 0)
	if _, ended := r.Ended[own.ID]; ended {
		t.Errorf("the own task was given up while nobody knows: %+v", r.Ended[own.ID])
	}
	r.Must(c.Client().CoreV1().Nodes().Delete(t.Context(), "real-1", metav1.DeleteOptions{}))
	if res := r.AwaitEnd(own.ID); res.Cause != executor.Vanished {
		t.Errorf("got %+v, want Vanished", res)
	}
	r.noJobs()
}
