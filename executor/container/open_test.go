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
	next    uint32
	started map[executor.ID]bool
	ended   map[executor.ID]executor.Result
	doing   map[executor.ID]string
}

func open(t *testing.T, cfg container.Config) *rig {
	t.Helper()
	r := &rig{T: t, cfg: cfg, started: map[executor.ID]bool{}, ended: map[executor.ID]executor.Result{}, doing: map[executor.ID]string{}}
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

// hear takes events until enough says so.
func (r *rig) hear(what string, enough func() bool) {
	r.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !enough() {
		select {
		case e := <-r.Events():
			r.note(e)
		case <-late.C:
			r.Fatalf("not after %s: %s; %s", patience, what, r.Status())
		}
	}
}

func (r *rig) note(e executor.Event) {
	switch {
	case e.Ended != nil:
		r.ended[e.ID] = *e.Ended
	case e.Doing != "":
		r.doing[e.ID] = e.Doing
	case e.Started:
		r.started[e.ID] = true
	}
}

func (r *rig) running(id executor.ID) {
	r.Helper()
	r.hear("start of "+id.String(), func() bool {
		if res, ok := r.ended[id]; ok {
			r.Fatalf("%s ended: %+v", id, res)
		}
		return r.started[id]
	})
}

func (r *rig) end(id executor.ID) executor.Result {
	r.Helper()
	r.hear("end of "+id.String(), func() bool { _, ok := r.ended[id]; return ok })
	return r.ended[id]
}

// await something that an attempt leads to.
func (r *rig) await(happened <-chan struct{}) {
	r.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		r.Fatalf("not after %s", patience)
	}
}

// capacity waits until there is some, or none.
func (r *rig) capacity(some bool) {
	r.Helper()
	r.hear("a change of capacity", func() bool { return (len(r.Capacity()) > 0) == some })
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
	id := r.start(r.shell(script))
	r.end(id)
	return strings.TrimSpace(r.output(id))
}
