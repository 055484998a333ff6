//go:build kube

package kube

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// benched is a handler on kwok's nodes whose calls are counted.
type benched struct {
	*Handler
	calls atomic.Int64
	nodes []string
	next  uint32
}

type counter struct {
	calls *atomic.Int64
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Watches are not calls of a task.
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		c.calls.Add(1)
	}
	return c.next.RoundTrip(r)
}

func openBench(b *testing.B, c *cluster.Cluster, nodes int, size cluster.Size) *benched {
	b.Helper()
	names, err := c.AddFakeNodes(b.Context(), nodes, size)
	if err != nil {
		b.Fatal(err)
	}
	h, err := Open(Config{
		Keeping: attempts.Keeping{Dir: filepath.Join(b.TempDir(), "kube"), Site: "site-2"}, Cluster: c.Kubeconfig(),
		Threshold: -1, LogWait: time.Nanosecond, PlaceWait: time.Minute, StartLimit: time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	o := &benched{Handler: h, nodes: names}
	h.api.batch.Client.Transport = counter{&o.calls, h.api.batch.Client.Transport}
	h.api.core.Client.Transport = counter{&o.calls, h.api.core.Client.Transport}
	if _, err = h.Adopt(b.Context()); err != nil {
		b.Fatal(err)
	}
	for len(h.Capacity()) < nodes { // new nodes are tainted for a moment
		<-h.Events()
	}
	return o
}

func (o *benched) task(env map[string]string) executor.Task {
	o.next++
	return executor.Task{
		ID:    executor.ID{Job: "site-1.1", Task: o.next, Attempt: 1, Token: 1},
		Owner: "site-1", Site: "site-2", Machine: machineOf(o.nodes[int(o.next)%len(o.nodes)]),
		Need: executor.Resources{MilliCPU: 1000}, Image: "example.org/task:1", Command: []string{"run"}, Env: env,
	}
}

// lanes is how many tasks are under way at a time in the figures.
const lanes = 60

// BenchmarkTasks is the figure "tasks a second through kube, beside a bare
// client-go loop": rounds of both in turn, so that both meet the same machine. The
// bare loop makes the same Jobs, watches them to their completion and removes them.
func BenchmarkTasks(b *testing.B) {
	c := cluster.Start(b)
	o := openBench(b, c, 4, cluster.Size{CPU: "100", Memory: "64Gi"})
	var bare, ours time.Duration
	const round = 100
	b.ResetTimer()
	for n := 0; n < b.N; n += round {
		began := time.Now()
		o.runBare(b, c.Client(), round)
		bare += time.Since(began)
		awaitNoJobs(b, c)
		began = time.Now()
		o.run(b, round)
		ours += time.Since(began)
		awaitNoJobs(b, c)
	}
	done := float64((b.N + round - 1) / round * round)
	b.ReportMetric(done/bare.Seconds(), "bare/s")
	b.ReportMetric(done/ours.Seconds(), "tasks/s")
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "of-bare")
	b.ReportMetric(float64(o.calls.Load())/done, "calls/task")
	b.ReportMetric(0, "ns/op")
}

// awaitNoJobs: what is removed behind must not burden the other's turn.
func awaitNoJobs(b *testing.B, c *cluster.Cluster) {
	b.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := c.Client().CoreV1().Pods("default").List(b.Context(), metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
	}
}

func (o *benched) run(b *testing.B, n int) {
	b.Helper()
	free, failed := make(chan struct{}, lanes), make(chan error, 1)
	for range lanes {
		free <- struct{}{}
	}
	go func() {
		for range n {
			<-free
			t := o.task(nil)
			go func() {
				if err := o.Start(context.Background(), t); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}()
		}
	}()
	for ended := 0; ended < n; {
		select {
		case e := <-o.Events():
			if e.Ended == nil {
				continue
			}
			ended++
			free <- struct{}{}
			if e.Ended.ExitCode != 0 {
				b.Fatalf("%s: %+v", e.ID, *e.Ended)
			}
		case err := <-failed:
			b.Fatal(err)
		}
	}
}

func (o *benched) runBare(b *testing.B, client kubernetes.Interface, n int) {
	b.Helper()
	jobs := client.BatchV1().Jobs("default")
	open := func() watch.Interface {
		w, err := jobs.Watch(b.Context(), metav1.ListOptions{LabelSelector: "bare=yes"})
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	w := open()
	defer func() { w.Stop() }()
	free, failed := make(chan struct{}, lanes), make(chan error, lanes)
	for range lanes {
		free <- struct{}{}
	}
	go func() {
		for range n {
			<-free
			j := o.bareJob(b)
			go func() {
				if _, err := jobs.Create(b.Context(), j, metav1.CreateOptions{}); err != nil {
					failed <- err
				}
			}()
		}
	}()
	behind := metav1.DeletePropagationBackground
	for ended := map[string]bool{}; len(ended) < n; {
		select {
		case e, alive := <-w.ResultChan():
			if !alive { // servers end watches as they like
				w = open()
				continue
			}
			j, ok := e.Object.(*batchv1.Job)
			if !ok || j.Status.Succeeded == 0 || ended[j.Name] {
				continue
			}
			ended[j.Name] = true
			free <- struct{}{}
			go func() {
				if err := jobs.Delete(b.Context(), j.Name,
					metav1.DeleteOptions{PropagationPolicy: &behind}); err != nil {
					failed <- err
				}
			}()
		case err := <-failed:
			b.Fatal(err)
		}
	}
}

func (o *benched) bareJob(b *testing.B) *batchv1.Job {
	t := o.task(nil)
	node, _ := nodeOf(t.Machine)
	wk := o.works.newWork(attempts.NewAttempt(t))
	wk.image = t.Image
	j, err := o.specs.job(wk, node)
	if err != nil {
		b.Error(err)
	}
	j.Spec.Template.Spec.SchedulingGates = nil // nobody would let it go
	j.Name, j.Labels, j.Spec.Template.Labels = fmt.Sprintf("bare-%d", o.next), map[string]string{"bare": "yes"}, nil
	return j
}

// BenchmarkRunning is the figure "memory with 10,000 running tasks", or as many as
// KUBE_TASKS says: what the handler's own heap grows by.
func BenchmarkRunning(b *testing.B) {
	all, err := strconv.Atoi(os.Getenv("KUBE_TASKS"))
	if err != nil {
		all = 10_000
	}
	c := cluster.Start(b)
	o := openBench(b, c, 10, cluster.Size{CPU: strconv.Itoa(all), Memory: "64Gi"})
	before := heap()
	running := 0
	for begun := 0; running < all; {
		for ; begun < all && begun-running < 4*lanes; begun++ {
			t := o.task(map[string]string{"FAKE_RUNS": "forever"})
			go func() {
				if err := o.Start(context.Background(), t); err != nil {
					panic(err) // nobody would wait for it in vain
				}
			}()
		}
		if e := <-o.Events(); e.Started {
			running++
		}
	}
	b.ReportMetric(float64(heap()-before)/float64(all), "B/task")
	b.ReportMetric(float64(heap())/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
