//go:build kube

package kube_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/executortest"
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
	if dir := os.Getenv("BE_WATCHED"); dir != "" {
		beWatched(dir)
	}
	_ = flag.Set("test.parallel", "64") // lanes say what runs at a time; a flag given is set later
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
	defer onReal.close()
	defer onOther.close()
	if _, err = shared.AddFakeNodes(ctx, 2, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// lane is what one test at a time uses; those of other lanes run beside it, for all of
// them mostly wait. A whole run has four control planes at a time.
type lane struct{ mu sync.Mutex }

var (
	onShared lane // shared
	onReal   machine
	onOther  machine // of the tests of watchdogs and of killed brokers: as long as the rest
	onOwn    lane    // a cluster that the test starts
)

// enter makes a test parallel, and waits for its turn.
func (l *lane) enter(t *testing.T) {
	t.Helper()
	t.Parallel()
	l.mu.Lock()
	t.Cleanup(l.mu.Unlock)
}

// rig is a handler on a cluster and what it has told.
type rig struct {
	*executortest.Rig
	c   *cluster.Cluster
	cfg kube.Config // with which it is opened again
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
		Keeping: attempts.Keeping{
			Dir: filepath.Join(t.TempDir(), "kube"), Site: "site-2",
			Logger: zerolog.New(zerolog.NewTestWriter(t)),
		},
		Cluster: c.Kubeconfig(), Namespace: ns, Federation: "test", LogWait: time.Millisecond,
	}
}

func open(t *testing.T, c *cluster.Cluster, cfg kube.Config) *rig {
	t.Helper()
	r := &rig{c: c, cfg: cfg}
	r.Rig = executortest.NewRig(t, storage(&r.cfg))
	t.Cleanup(r.EndAll)
	return r
}

func (r *rig) task(env ...string) executor.Task {
	t := r.Task("kube/fake-1", "run")
	t.Need.MemMiB, t.Image, t.Env = 64, "example.org/task:1", map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		t.Env[k] = v
	}
	return t
}

// cores that are exposed of a fake node, once they are n.
func (r *rig) cores(machine string, n int64) {
	r.Helper()
	r.Hear(fmt.Sprintf("%d cores on %s", n, machine), func() bool {
		for _, m := range r.Capacity() {
			if m.Name == machine {
				return m.MilliCPU == n*1000
			}
		}
		return n == 0
	})
}
