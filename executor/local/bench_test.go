package local

import (
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// inParallel calls f b.N times from p goroutines and reports the rate.
func inParallel(b *testing.B, p int, f func(i int64)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range p {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				f(i)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// router hands each attempt's events to who waits for them.
type router struct {
	h  *Handler
	mu sync.Mutex
	by map[executor.ID]chan executor.Event
}

func newRouter(b *testing.B, cores int, contain Whom) *router {
	b.Helper()
	h, err := Open(Config{
		Keeping: attempts.Keeping{Dir: b.TempDir(), Site: "site-1"}, Cores: cores, Contain: contain,
		Executable: os.Getenv("CLOUDSHARE_BINARY"),
	})
	if err == nil {
		err = h.contain.why
	}
	if err != nil {
		b.Fatal(err)
	}
	if _, err = h.Adopt(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := &router{h: h, by: map[executor.ID]chan executor.Event{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range h.Events() {
			r.mu.Lock()
			ch := r.by[e.ID]
			r.mu.Unlock()
			ch <- e
		}
	}()
	b.Cleanup(func() {
		h.Close()
		<-done
	})
	return r
}

// run runs one attempt and forgets it; it returns the time to its start.
func (r *router) run(b *testing.B, i int64) time.Duration { return r.runOf(b, i, "") }

// runOf does so for an owner.
func (r *router) runOf(b *testing.B, i int64, owner string) time.Duration {
	return r.runTask(b, i, executor.Task{Owner: owner})
}

// runTask does so for a task with an owner, or with files that it leaves as they are.
func (r *router) runTask(b *testing.B, i int64, t executor.Task) time.Duration {
	id := executor.ID{Job: "site-1.1", Task: uint32(i), Attempt: 1, Token: uint64(i)}
	t.ID, t.Command, t.Need = id, []string{"/bin/true"}, executor.Resources{MilliCPU: 1000}
	ch := make(chan executor.Event, 2)
	r.mu.Lock()
	r.by[id] = ch
	r.mu.Unlock()
	began := time.Now()
	if err := r.h.Start(b.Context(), t); err != nil {
		b.Error(err)
		return 0
	}
	<-ch
	e := <-ch
	if e.Ended == nil || e.Ended.Cause != executor.Exited || e.Ended.ExitCode != 0 {
		b.Errorf("got %+v, want a clean exit", e.Ended)
		return 0
	}
	r.mu.Lock()
	delete(r.by, id)
	r.mu.Unlock()
	if t.Outputs.Wanted() {
		c := contents{}
		if err := r.h.Collect(b.Context(), id, t.Outputs, c); err != nil || len(c) != len(t.Files) {
			b.Errorf("collected %d files, %v", len(c), err)
		}
	}
	if err := r.h.Forget(b.Context(), id); err != nil {
		b.Error(err)
	}
	return e.Ended.Started.Sub(began)
}

// BenchmarkTasks: /bin/true through the handler, outside of sandboxes and in them, each
// beside its own limit: fork and exec, and the same into the namespaces of a sandbox.
func BenchmarkTasks(b *testing.B) {
	for _, p := range []int{1, 2, 8} {
		name := "P=" + string(rune('0'+p))
		for _, kind := range []struct {
			limit, handler string
			attr           *syscall.SysProcAttr
			contain        Whom
		}{
			{"limit=fork-exec/", "handler/", nil, ContainNobody},
			{"limit=fork-exec-namespaces/", "sandboxes/", namespaces(), ContainAll},
		} {
			b.Run(kind.limit+name, func(b *testing.B) {
				inParallel(b, p, func(int64) { bare(b, kind.attr) })
			})
			b.Run(kind.handler+name, func(b *testing.B) {
				r := newRouter(b, p, kind.contain)
				for i := range int64(4 * p) {
					r.run(b, 1_000_000+i+int64(b.N)*1000) // warm up
				}
				inParallel(b, p, func(i int64) { r.run(b, i+int64(b.N)*1000) })
			})
		}
	}
}

// namespaces are those of a sandbox.
func namespaces() *syscall.SysProcAttr { return completePlan(Config{}).Attributes() }

func bare(b *testing.B, attr *syscall.SysProcAttr) {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = attr
	if err := cmd.Run(); err != nil {
		b.Error(err)
	}
}

// BenchmarkStart: Start → the process runs, outside of a sandbox and in one, beside a bare
// fork and exec.
func BenchmarkStart(b *testing.B) {
	start := func(b *testing.B, attr *syscall.SysProcAttr) {
		quantiles(b, func(int64) time.Duration {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = attr
			began := time.Now()
			if err := cmd.Start(); err != nil {
				b.Error(err)
				return 0
			}
			d := time.Since(began)
			if err := cmd.Wait(); err != nil {
				b.Error(err)
			}
			return d
		})
	}
	handler := func(b *testing.B, contain Whom) {
		r := newRouter(b, 1, contain)
		r.run(b, 0)
		quantiles(b, func(i int64) time.Duration { return r.run(b, i+1+int64(b.N)*1000) })
	}
	b.Run("limit=fork-exec", func(b *testing.B) { start(b, nil) })
	b.Run("handler", func(b *testing.B) { handler(b, ContainNobody) })
	b.Run("limit=fork-exec-namespaces", func(b *testing.B) { start(b, namespaces()) })
	b.Run("sandbox", func(b *testing.B) { handler(b, ContainAll) })
}

func quantiles(b *testing.B, f func(i int64) time.Duration) {
	b.Helper()
	ds := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range int64(b.N) {
		ds = append(ds, f(i))
	}
	slices.Sort(ds)
	b.ReportMetric(float64(ds[len(ds)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(ds[len(ds)*99/100].Microseconds()), "p99-µs")
}
