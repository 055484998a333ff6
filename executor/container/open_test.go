//go:build container

package container_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// patience bounds every wait; nothing should come near it.
const patience = 60 * time.Second

// rig is a handler on an engine and what it has told.
type rig struct {
	*testing.T
	cfg container.Config
	*container.Handler
	next uint32
}

func open(t *testing.T, cfg container.Config) *rig {
	t.Helper()
	r := &rig{T: t, cfg: cfg}
	r.reopen()
	t.Cleanup(func() { r.must(r.Handler.Close()) })
	return r
}

// reopen opens the handler, again after Close.
func (r *rig) reopen() []executor.State {
	r.Helper()
	h, err := container.Open(r.cfg)
	r.must(err)
	r.Handler = h
	states, err := h.Adopt(r.Context())
	r.must(err)
	return states
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) task(image string, command ...string) executor.Task {
	r.next++
	return executor.Task{
		ID:    executor.ID{Job: "site-1.7", Task: r.next, Attempt: 1, Token: uint64(r.next)},
		Owner: "site-1", Site: r.cfg.Site, Machine: "container", Need: executor.Resources{MilliCPU: 1000},
		Image: image, Command: command,
	}
}

func (r *rig) shell(script string) executor.Task {
	return r.task(engines.Image, "/bin/sh", "-c", script)
}

func (r *rig) start(t executor.Task) executor.ID {
	r.Helper()
	r.must(r.Start(r.Context(), t))
	return t.ID
}

// hear takes events until one is as wanted.
func (r *rig) hear(what string, wanted func(executor.Event) bool) executor.Event {
	r.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case e := <-r.Events():
			if wanted(e) {
				return e
			}
		case <-late.C:
			r.Fatalf("not after %s: %s; %s", patience, what, r.Status())
		}
	}
}

func (r *rig) running(id executor.ID) {
	r.Helper()
	r.hear("start of "+id.String(), func(e executor.Event) bool {
		if e.ID == id && e.Ended != nil {
			r.Fatalf("%s ended: %+v", id, e.Ended)
		}
		return e.ID == id && e.Started
	})
}

func (r *rig) end(id executor.ID) executor.Result {
	r.Helper()
	return *r.hear("end of "+id.String(), func(e executor.Event) bool { return e.ID == id && e.Ended != nil }).Ended
}

// capacity waits until there is some, or none.
func (r *rig) capacity(some bool) {
	r.Helper()
	for (len(r.Capacity()) > 0) != some {
		r.hear("a change of capacity", func(e executor.Event) bool { return e.Capacity })
	}
}

func (r *rig) output(id executor.ID) string {
	r.Helper()
	rc, err := r.Logs(r.Context(), id, "stdout", false)
	r.must(err)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	r.must(err)
	return string(b)
}

// said runs a script and returns what it wrote.
func (r *rig) said(script string) string {
	r.Helper()
	id := r.start(r.shell(script + " 2>&1"))
	r.end(id)
	return strings.TrimSpace(r.output(id))
}
