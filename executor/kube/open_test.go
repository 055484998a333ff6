//go:build kube

package kube_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// patience bounds every wait; nothing should come near it.
const patience = 90 * time.Second

// shared is one cluster with fake nodes for the tests that break nothing.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	if dir := os.Getenv("BE_BROKER"); dir != "" {
		beBroker(dir)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	kube.CaptureLogs(zerolog.Nop())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if shared, err = cluster.New(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	defer func() {
		if machine.c != nil {
			machine.c.Close()
		}
	}()
	if _, err = shared.AddFakeNodes(ctx, 2, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// rig is a handler on a cluster and what it has told.
type rig struct {
	*testing.T
	*kube.Handler
	c       *cluster.Cluster
	cfg     kube.Config
	next    uint32
	started map[executor.ID]bool
	ended   map[executor.ID]executor.Result
	doing   map[executor.ID]string
}

// config is of a handler with a namespace of its own; output of fake nodes is not
// waited for.
func config(t *testing.T, c *cluster.Cluster) kube.Config {
	t.Helper()
	ns := "ns-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if err := c.Namespace(t.Context(), ns[:min(len(ns), 60)]); err != nil {
		t.Fatal(err)
	}
	return kube.Config{
		Keeping: books.Keeping{Dir: filepath.Join(t.TempDir(), "kube"), Site: "site-2", Logger: zerolog.New(zerolog.NewTestWriter(t))},
		Cluster: c.Kubeconfig(), Namespace: ns, Federation: "test", LogWait: time.Millisecond,
	}
}

func open(t *testing.T, c *cluster.Cluster, cfg kube.Config) *rig {
	t.Helper()
	r := &rig{
		T: t, c: c, cfg: cfg,
		started: map[executor.ID]bool{}, ended: map[executor.ID]executor.Result{}, doing: map[executor.ID]string{},
	}
	r.reopen()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Handler.End(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// reopen opens the handler, again after Close.
func (r *rig) reopen() []executor.State {
	r.Helper()
	h, err := kube.Open(r.cfg)
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

func (r *rig) task(env ...string) executor.Task {
	r.next++
	t := executor.Task{
		ID:    executor.ID{Job: "site-1.7", Task: r.next, Attempt: 1, Token: uint64(r.next)},
		Owner: "site-1", Site: r.cfg.Site, Machine: "kube/fake-1", Need: executor.Resources{MilliCPU: 1000, MemMiB: 64},
		Image: "example.org/task:1", Command: []string{"run"}, Env: map[string]string{},
	}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		t.Env[k] = v
	}
	return t
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
		if was, twice := r.ended[e.ID]; twice {
			r.Errorf("%s ended twice: %+v, %+v", e.ID, was, *e.Ended)
		}
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

// cores that are exposed of a fake node, once they are n.
func (r *rig) cores(machine string, n int64) {
	r.Helper()
	r.hear(fmt.Sprintf("%d cores on %s", n, machine), func() bool {
		for _, m := range r.Capacity() {
			if m.Name == machine {
				return m.MilliCPU == n*1000
			}
		}
		return n == 0
	})
}

func (r *rig) output(id executor.ID, stream string) string {
	r.Helper()
	rc, err := r.Logs(r.Context(), id, stream, false)
	r.must(err)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	r.must(err)
	return string(b)
}
