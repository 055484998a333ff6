//go:build kube

package kube_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/executor/watchdog"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// program is an image of this program, on every real node.
const program = "cloudshare.test/cloudshare:1"

// build builds it once, below the folder of the cluster that goes with the tests.
var build = sync.OnceValues(func() (string, error) { return testbed.Build(context.Background(), shared.Dir) })

// brought are the nodes that have it.
var brought sync.Map

func bring(t *testing.T, n *cluster.Node) {
	t.Helper()
	if _, is := brought.LoadOrStore(n, true); is {
		return
	}
	file, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if err = n.ImportProgram(t.Context(), program, file); err != nil {
		t.Fatal(err)
	}
}

// watched makes a configuration one with a watchdog, which a node's pods reach.
func watched(t *testing.T, c *cluster.Cluster, n *cluster.Node, cfg kube.Config) kube.Config {
	t.Helper()
	bring(t, n)
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host := "127.0.0.1"
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			host = a.Address
		}
	}
	addr, err := testbed.FreeAddressOf(host)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Watchdog = kube.Watchdog{Image: program, Listen: addr, URL: "http://" + addr}
	return cfg
}

// foreign has all tasks run under a watchdog: each has a lease, which is extended.
type foreign struct{ kube.Watched }

func (f foreign) Start(ctx context.Context, t executor.Task) error {
	if t.Fence == 0 {
		t.Fence = executor.Boottime() + int64(time.Hour)
	}
	return f.Watched.Start(ctx, t)
}

// TestWatchedConformance: tasks under a watchdog behave as any where their first
// process matters, and are held to the lease.
func TestWatchedConformance(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	executortest.RunSome(t, func(t *testing.T) executortest.Env {
		cfg := watched(t, c, n, realConfig(t, c))
		cfg.StartLimit = time.Minute
		env := storage(&cfg)
		env.Slack = 15 * time.Second // two containers, one after the other
		env.Open = func(t *testing.T) executor.Handler { return openForeign(t, cfg) }
		return env
	}, "Finish", "ExitCode", "Signal", "NoSuchCommand", "Timeout", "StopTreeThatIgnoresTERM", "LeftoversDieWithTheTask",
		"LogsOfBothStreams", "Environment", "StartTwiceRunsOnce", "AdoptRunning", "AdoptedStop", "OrphanIsCharged")
}

// TestWatchedFiles: files travel to pods and back; every other task is one with a fence.
func TestWatchedFiles(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	executortest.RunFiles(t, func(t *testing.T) executortest.Env {
		cfg := watched(t, c, n, realConfig(t, c))
		cfg.StartLimit = time.Minute
		env := storage(&cfg)
		env.Slack = 15 * time.Second
		env.Open = func(t *testing.T) executor.Handler {
			t.Helper()
			h, err := kube.OpenWatched(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return &half{Watched: h}
		}
		return env
	})
}

// TestFilesWaitForTheBroker: a pod fetches and sends when the broker is back, and its task runs once.
func TestFilesWaitForTheBroker(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	cfg := watched(t, c, n, realConfig(t, c))
	cfg.StartLimit = time.Minute
	r := open(t, c, cfg)
	before := r.shell("cat in && echo before >out")
	before.Files = []executor.File{{Path: "in", Content: []byte("in\n")}}
	before.Fence = executor.Boottime() + int64(time.Hour)
	ended := filepath.Join(t.TempDir(), "ended")
	after := r.shell("sleep 3; echo after >out; >" + ended)
	before.Outputs, after.Outputs = executor.Outputs{Paths: []string{"out"}}, executor.Outputs{Paths: []string{"out"}}
	r.AwaitRunning(r.Begin(after))
	r.Begin(before)
	r.Must(r.Close())
	r.await("that a task ends while its broker is away", func() error {
		_, err := os.Stat(ended)
		return err
	})
	r.Open()
	for _, task := range []executor.Task{after, before} {
		if res := r.AwaitEnd(task.ID); res.Cause != executor.Exited || res.ExitCode != 0 || res.Usage.PeakMemory == 0 {
			t.Errorf("got %+v", res)
		}
	}
}

// half has every other task with files run under a watchdog with a lease, and all others.
type half struct {
	kube.Watched
	n atomic.Int64
}

func (h *half) Start(ctx context.Context, t executor.Task) error {
	if without := len(t.Files) == 0 && !t.Outputs.Wanted(); without || h.n.Add(1)%2 == 0 {
		t.Fence = executor.Boottime() + int64(time.Hour)
	}
	return h.Watched.Start(ctx, t)
}

// openForeign opens a handler of watched pods to whom all tasks are other sites'.
func openForeign(t *testing.T, cfg kube.Config) executor.Handler {
	t.Helper()
	h, err := kube.OpenWatched(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return foreign{h}
}

// beWatched is the broker that TestWatchedBrokerKilled kills: it starts one task with
// no timeout, and extends its lease as long as it lives.
func beWatched(dir string) {
	kube.CaptureLogs(zerolog.Nop())
	const lease = 6 * time.Second
	h, err := kube.OpenWatched(kube.Config{
		Keeping: attempts.Keeping{Dir: dir, Site: "site-2"},
		Cluster: os.Getenv("CLUSTER"), Namespace: os.Getenv("NAMESPACE"), Threshold: -1, Mounts: []string{os.TempDir() + ":" + os.TempDir()},
		Watchdog: kube.Watchdog{Image: program, Listen: os.Getenv("LISTEN"), URL: "http://" + os.Getenv("LISTEN")},
	})
	if err != nil {
		panic(err)
	}
	if _, err = h.Adopt(context.Background()); err != nil {
		panic(err)
	}
	extend := func() {
		if err := h.Extend(executor.Boottime() + int64(lease)); err != nil {
			panic(err)
		}
	}
	extend()
	go func() {
		err := h.Start(context.Background(), executor.Task{
			ID: executor.ID{Job: "site-1.9", Task: 0, Attempt: 1, Token: 1}, Owner: "site-1", Site: "site-2", Machine: "kube/real-1",
			Need: executor.Resources{MilliCPU: 1000}, Image: cluster.Image, Fence: executor.Boottime() + int64(lease),
			Command: []string{"/bin/sh", "-c", `exec 3>` + os.Getenv("FIFO") + `; echo up >&3; trap "" TERM; setsid sleep 1000 & while :; do sleep 1000; done`},
		})
		if err != nil {
			panic(err)
		}
	}()
	for range time.Tick(lease / 4) {
		extend()
	}
}

// TestWatchedBrokerKilled: a broker that is killed with KILL leaves a task that has no
// timeout and is deaf to TERM. Both it and what it has left are dead by the last
// fence, though the kubelet knows of none.
func TestWatchedBrokerKilled(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	cfg := watched(t, c, n, realConfig(t, c))
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BE_WATCHED="+cfg.Dir, "CLUSTER="+cfg.Cluster, "NAMESPACE="+cfg.Namespace, "LISTEN="+cfg.Watchdog.Listen, "FIFO="+fifo)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := make(chan *bufio.Reader, 1)
	go func() {
		f, err := os.Open(fifo) // when the task has come
		if err != nil {
			close(out)
			return
		}
		out <- bufio.NewReader(f)
	}()
	var task *bufio.Reader
	select {
	case task = <-out:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("the task does not begin")
	}
	if up, err := task.ReadString('\n'); up != "up\n" || err != nil {
		t.Fatalf("the task says %q, %v", up, err)
	}
	began := executor.Boottime()
	for executor.Boottime() < began+int64(10*time.Second) { // longer than a lease
		<-time.After(100 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	fence := fenceIn(t, cfg.Dir)
	if left := time.Duration(fence - executor.Boottime()); left < time.Second {
		t.Errorf("%s were left of the lease: that shows nothing", left)
	}
	if rest, err := task.ReadString('\n'); rest != "" || err == nil {
		t.Errorf("the task says %q", rest)
	}
	if now := executor.Boottime(); now > fence {
		t.Errorf("dead %s after its fence", time.Duration(now-fence))
	}
	r := open(t, c, cfg)
	id := executor.ID{Job: "site-1.9", Task: 0, Attempt: 1, Token: 1}
	if res := r.AwaitEnd(id); res.Cause != executor.Fenced {
		t.Errorf("got %+v, want Fenced", res)
	}
	r.noJobs()
}

// fenceIn is the fence that a broker's folder has.
func fenceIn(t *testing.T, dir string) int64 {
	t.Helper()
	page, f, err := watchdog.OpenPage(filepath.Join(dir, "fence"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer page.Close()
	return page.Load()
}

// TestWatchedNodeVanishes: once its lease is over, a task on a machine that is gone is
// certainly dead, and told lost, long before Kubernetes gives it up.
func TestWatchedNodeVanishes(t *testing.T) {
	onOwn.enter(t)
	c := cluster.Start(t)
	n, err := c.AddNode(t.Context(), "real-1")
	if err != nil {
		t.Fatal(err)
	}
	cfg := watched(t, c, n, realConfig(t, c))
	cfg.StartLimit = time.Minute // the cluster is new, and its node's first pod takes long on a busy machine
	r := open(t, c, cfg)
	task := r.shell("sleep 1000")
	task.Fence = executor.Boottime() + int64(40*time.Second)
	id := r.Begin(task)
	r.AwaitRunning(id)
	n.Vanish()
	if res := r.AwaitEnd(id); res.Cause != executor.Fenced || executor.Boottime() < task.Fence {
		t.Errorf("got %+v %s before its fence, want Fenced behind it", res, time.Duration(task.Fence-executor.Boottime()))
	}
}

// TestWatchedReasons: what keeps a task from its watchdog, or its watchdog from its
// broker, is said in one line, and is not the task's fault.
func TestWatchedReasons(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	for name, change := range map[string]struct {
		with func(*kube.Watchdog)
		want string
	}{
		// The kubelet says ErrImagePull and ImagePullBackOff in turns, and what failed in both.
		"no image": {func(w *kube.Watchdog) { w.Image = "127.0.0.1:1/cloudshare:1" }, "failed to pull"},
		"no way":   {func(w *kube.Watchdog) { w.URL = "http://127.0.0.1:1" }, "its watchdog waits for an answer of this site's broker"},
		"not it":   {func(w *kube.Watchdog) { w.Image = cluster.Image }, "the watchdog cannot be put into its pod"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			cfg := watched(t, c, n, realConfig(t, c))
			change.with(&cfg.Watchdog)
			r := open(t, c, cfg)
			task := r.shell("true")
			task.Fence = executor.Boottime() + int64(time.Hour)
			if res := r.AwaitEnd(r.Begin(task)); res.Cause != executor.Stopped ||
				!strings.Contains(res.Detail, change.want) {
				t.Errorf("got %+v, want a loss for %q", res, change.want)
			}
			r.noJobs()
		})
	}
}
