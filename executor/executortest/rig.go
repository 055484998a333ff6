package executortest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Rig is one handler under test and what it has told so far: of the suite, and of
// the tests of what is a handler's own.
type Rig struct {
	*testing.T
	executor.Handler
	env Env
	// Started, Ended and Doing are what was told of attempts, as far as Hear and
	// its like have taken it; of Doing the last.
	Started map[executor.ID]bool
	Ended   map[executor.ID]executor.Result
	Doing   map[executor.ID]string
	next    uint32 // of tasks
}

// NewRig opens the handler and adopts. To close it, or to end it by EndAll, is the
// caller's.
func NewRig(t *testing.T, env Env) *Rig {
	t.Helper()
	env.Patience = cmp.Or(env.Patience, patience)
	r := &Rig{
		T: t, env: env,
		Started: map[executor.ID]bool{}, Ended: map[executor.ID]executor.Result{}, Doing: map[executor.ID]string{},
	}
	r.Open()
	return r
}

// Open opens the handler, again after Close, and adopts.
func (r *Rig) Open() []executor.State {
	r.Helper()
	r.Handler = r.env.Open(r.T)
	states, err := r.Adopt(r.Context())
	r.Must(err)
	return states
}

// EndAll ends the handler and all of its attempts.
func (r *Rig) EndAll() {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), r.env.Patience)
	defer cancel()
	if err := r.End(ctx); err != nil {
		r.Errorf("end: %v", err)
	}
}

// Must ends the test on an error.
func (r *Rig) Must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// Task makes a task of an id of its own, for one core of a machine.
func (r *Rig) Task(machine string, command ...string) executor.Task {
	r.next++
	return executor.Task{
		ID:    executor.ID{Job: "site-1.42", Task: r.next, Attempt: 1, Token: uint64(100 + r.next)},
		Owner: "site-1", Site: r.env.Site, Machine: machine,
		Need: executor.Resources{MilliCPU: 1000}, Command: command, Image: r.env.Image,
	}
}

// Begin starts a task.
func (r *Rig) Begin(t executor.Task) executor.ID {
	r.Helper()
	r.Must(r.Start(r.Context(), t))
	return t.ID
}

// Hear takes events until enough says so.
func (r *Rig) Hear(what string, enough func() bool) {
	r.Helper()
	late := time.NewTimer(r.env.Patience)
	defer late.Stop()
	for !enough() {
		select {
		case e, ok := <-r.Events():
			if !ok {
				r.Fatalf("events closed while waiting for %s", what)
			}
			r.checkEvent(e)
		case <-late.C:
			r.Fatalf("not after %s: %s; %s", r.env.Patience, what, r.Status())
		}
	}
}

func (r *Rig) checkEvent(e executor.Event) {
	r.Helper()
	if e.Started {
		if r.Started[e.ID] {
			r.Errorf("%s started twice", e.ID)
		}
		r.Started[e.ID] = true
	}
	if e.Doing != "" {
		r.Doing[e.ID] = e.Doing
	}
	if e.Ended != nil {
		if was, twice := r.Ended[e.ID]; twice {
			r.Errorf("%s ended twice: %+v, %+v", e.ID, was, *e.Ended)
		}
		r.Ended[e.ID] = *e.Ended
	}
}

// AwaitRunning waits until an attempt runs; its end is a failure.
func (r *Rig) AwaitRunning(id executor.ID) {
	r.Helper()
	r.Hear(fmt.Sprintf("start of %s", id), func() bool {
		if res, ok := r.Ended[id]; ok {
			r.Fatalf("%s ended: %+v", id, res)
		}
		return r.Started[id]
	})
}

// AwaitEnd waits for an attempt's end.
func (r *Rig) AwaitEnd(id executor.ID) executor.Result {
	r.Helper()
	r.Hear(fmt.Sprintf("end of %s", id), func() bool { _, ok := r.Ended[id]; return ok })
	return r.Ended[id]
}

// Written returns what an attempt has written so far.
func (r *Rig) Written(id executor.ID, stream string) string {
	r.Helper()
	rc, err := r.Logs(r.Context(), id, stream, false)
	r.Must(err)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	r.Must(err)
	return string(b)
}
