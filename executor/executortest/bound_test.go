package executortest

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// A handler with nothing but a bound: timeout(1) kills each task at its wall
// time, nobody else can. It shows that the cases for such handlers can be met.
func TestBoundedHandler(t *testing.T) {
	runFence(t, func(*testing.T) Env {
		c := &cluster{jobs: map[executor.ID]*executor.State{}}
		return Env{Site: "site-2", Open: func(*testing.T) executor.Handler { return c.open() }}
	})
}

// cluster is what outlives the handler: jobs under wall times.
type cluster struct {
	mu      sync.Mutex
	jobs    map[executor.ID]*executor.State
	running sync.WaitGroup
	handler *walltime // the one that hears of ends, nil = none
}

func (c *cluster) open() *walltime {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = &walltime{cluster: c, events: make(chan executor.Event, 100)}
	return c.handler
}

// submit starts a job and has its end told to whoever is there then.
func (c *cluster) submit(t executor.Task) error {
	cmd := exec.Command("timeout", append([]string{"--signal=KILL", fmt.Sprint(t.Timeout.Seconds())}, t.Command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("submit %s: %w", t.ID, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[t.ID] = &executor.State{Task: t, Running: true}
	c.tell(executor.Event{ID: t.ID, Started: true})
	c.running.Go(func() {
		_ = cmd.Wait() // killed: its limit is the only end in these cases
		c.mu.Lock()
		defer c.mu.Unlock()
		res := &executor.Result{Cause: executor.TimedOut, Signal: int(syscall.SIGKILL), Run: t.Timeout}
		*c.jobs[t.ID] = executor.State{Task: t, Ended: res}
		c.tell(executor.Event{ID: t.ID, Ended: res})
	})
	return nil
}

// tell reports to the open handler. REQUIRES: c.mu held.
func (c *cluster) tell(ev executor.Event) {
	if c.handler != nil {
		c.handler.events <- ev
	}
}

// walltime hands tasks to a cluster.
type walltime struct {
	cluster *cluster
	events  chan executor.Event
}

var (
	_ executor.Handler = (*walltime)(nil)
	_ executor.Bounded = (*walltime)(nil)
)

// Bound allows for a second of starting and killing.
func (h *walltime) Bound(t executor.Task) (time.Duration, bool) {
	return t.Timeout + time.Second, t.Timeout > 0
}

func (h *walltime) Start(_ context.Context, t executor.Task) error {
	d, ok := h.Bound(t)
	if t.Fence != 0 && (!ok || executor.Boottime()+int64(d) > t.Fence) {
		return fmt.Errorf("start %s: %w", t.ID, executor.ErrLate)
	}
	return h.cluster.submit(t)
}

func (h *walltime) Adopt(context.Context) (found []executor.State, err error) {
	h.cluster.mu.Lock()
	defer h.cluster.mu.Unlock()
	for _, st := range h.cluster.jobs {
		found = append(found, *st)
	}
	return found, nil
}

func (h *walltime) Close() error {
	h.cluster.mu.Lock()
	defer h.cluster.mu.Unlock()
	if h.cluster.handler == h {
		h.cluster.handler = nil
	}
	return nil
}

func (h *walltime) End(context.Context) error {
	h.cluster.running.Wait()
	return h.Close()
}

func (h *walltime) Capacity() []executor.Machine {
	return []executor.Machine{{Name: "cluster", Resources: executor.Resources{MilliCPU: 2000, MemMiB: 64}}}
}

func (h *walltime) Logs(_ context.Context, id executor.ID, _ string, _ bool) (io.ReadCloser, error) {
	return nil, fmt.Errorf("logs of %s: %w", id, executor.ErrUnknownAttempt)
}

func (h *walltime) Name() string                                    { return "walltime" }
func (h *walltime) Status() string                                  { return "kills at the wall time only" }
func (h *walltime) Stop(context.Context, executor.ID, string) error { return nil }
func (h *walltime) Forget(context.Context, executor.ID) error       { return nil }
func (h *walltime) Published(executor.Demand)                       {}
func (h *walltime) Events() <-chan executor.Event                   { return h.events }
