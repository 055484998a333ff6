package broker

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// fakeHandler runs nothing: a test ends its attempts. It survives the broker
// like real supervisors do, through reopen.
type fakeHandler struct {
	cores   int64
	events  chan executor.Event
	started chan executor.ID
	stopped chan executor.ID

	mu     sync.Mutex
	states map[executor.ID]executor.State
	demand executor.Demand
	asked  chan struct{} // closed once demand was told
}

var (
	_ executor.Handler  = (*fakeHandler)(nil)
	_ executor.Extender = (*fencedFake)(nil)
	_ executor.Bounded  = (*boundedFake)(nil)
)

// fencedFake says that it has a watchdog.
type fencedFake struct{ *fakeHandler }

// Extend implements executor.Extender: nothing runs, nothing has a fence.
func (fencedFake) Extend(int64) error { return nil }

// boundedFake says that its tasks end by their timeout, and a minute later.
type boundedFake struct{ *fakeHandler }

// Bound implements executor.Bounded.
func (boundedFake) Bound(t executor.Task) (time.Duration, bool) {
	return t.Timeout + time.Minute, t.Timeout > 0
}

func newFakeHandler(cores int64) *fakeHandler {
	return &fakeHandler{
		cores: cores, states: map[executor.ID]executor.State{}, asked: make(chan struct{}),
		events: make(chan executor.Event, 100), started: make(chan executor.ID, 100),
		stopped: make(chan executor.ID, 100),
	}
}

// reopen is the handler as the next life of the broker finds it.
func (h *fakeHandler) reopen() *fakeHandler {
	n := newFakeHandler(h.cores)
	h.mu.Lock()
	defer h.mu.Unlock()
	n.states = h.states
	return n
}

// end finishes an attempt, with an event if a broker listens.
func (h *fakeHandler) end(id executor.ID, r executor.Result) {
	h.mu.Lock()
	st := h.states[id]
	st.Running, st.Ended = false, &r
	h.states[id] = st
	h.mu.Unlock()
	h.events <- executor.Event{ID: id, Ended: &r}
}

// task returns what an attempt runs.
func (h *fakeHandler) task(id executor.ID) executor.Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[id].Task
}

func (h *fakeHandler) Name() string   { return "fake" }
func (h *fakeHandler) Status() string { return "runs nothing" }

func (h *fakeHandler) Capacity() []executor.Machine {
	return []executor.Machine{{Name: "fake", Resources: executor.Resources{MilliCPU: h.cores * 1000, MemMiB: 1024}}}
}

func (h *fakeHandler) Adopt(context.Context) ([]executor.State, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []executor.State
	for _, st := range h.states {
		out = append(out, st)
	}
	return out, nil
}

func (h *fakeHandler) Start(_ context.Context, t executor.Task) error {
	h.mu.Lock()
	h.states[t.ID] = executor.State{Task: t, Running: true}
	h.mu.Unlock()
	h.events <- executor.Event{ID: t.ID, Started: true}
	h.started <- t.ID
	return nil
}

func (h *fakeHandler) Stop(_ context.Context, id executor.ID, _ string) error {
	h.stopped <- id
	return nil
}

func (h *fakeHandler) Forget(_ context.Context, id executor.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.states, id)
	return nil
}

func (h *fakeHandler) Logs(_ context.Context, id executor.ID, stream string, _ bool) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(stream + " of " + id.String())), nil
}

func (h *fakeHandler) Published(d executor.Demand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.demand = d
	select {
	case <-h.asked:
	default:
		close(h.asked)
	}
}

func (h *fakeHandler) Events() <-chan executor.Event { return h.events }
func (h *fakeHandler) Close() error                  { return nil }

func (h *fakeHandler) End(context.Context) error {
	h.mu.Lock()
	var running []executor.ID
	for id, st := range h.states {
		if st.Running {
			running = append(running, id)
		}
	}
	h.mu.Unlock()
	for _, id := range running {
		h.end(id, executor.Result{Cause: executor.Stopped})
	}
	return nil
}
