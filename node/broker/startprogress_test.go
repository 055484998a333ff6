package broker

import (
	"context"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// preparingFake takes attempts and does not start them yet.
type preparingFake struct{ fencedFake }

// Start implements executor.Handler.
func (h preparingFake) Start(_ context.Context, t executor.Task) error {
	h.started <- t.ID
	return nil
}

// TestDoingIsTheReason: what a handler does before it starts a task is the
// task's reason at its own site, and no longer once it runs.
func TestDoingIsTheReason(t *testing.T) {
	const fetching = "fetching image docker.io/library/alpine:3"
	s := startSites(t, 1)[0]
	s.stop(t)
	s.kind = func(h *fakeHandler) executor.Handler { return preparingFake{fencedFake{h}} }
	s.start(t)
	job := s.accept(t, sleepJob).ID
	id := <-s.handler.started
	reason := func() string {
		tasks, _, err := s.Tasks(t.Context(), job, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		return tasks[0].Reason
	}
	s.runner.handle(s.handler, executor.Event{ID: id, Doing: fetching})
	if got := reason(); got != fetching {
		t.Errorf("got %q, want %q", got, fetching)
	}
	s.runner.handle(s.handler, executor.Event{ID: id, Started: true})
	if got := reason(); got != "" {
		t.Errorf("it runs, and the reason is %q", got)
	}
}
