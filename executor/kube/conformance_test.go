//go:build kube

package kube_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// machine is one cluster with a node of a real kubelet, made by the first test that
// wants it, and a lane of its own.
type machine struct {
	lane
	c *cluster.Cluster
	n *cluster.Node
}

// node is for the test whose turn it is.
func (m *machine) node(t *testing.T) (*cluster.Cluster, *cluster.Node) {
	t.Helper()
	if m.c == nil {
		c, err := cluster.New(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		m.c = c
	}
	if m.n == nil {
		n, err := m.c.AddNode(context.Background(), "real-1")
		if err != nil {
			t.Fatal(err)
		}
		m.n = n
	}
	return m.c, m.n
}

func (m *machine) close() {
	if m.c != nil {
		m.c.Close()
	}
}

// realConfig is of a handler on a real node, all of it; tasks see the test's own
// files.
func realConfig(t *testing.T, c *cluster.Cluster) kube.Config {
	t.Helper()
	cfg := config(t, c)
	cfg.Threshold, cfg.PrivateDir, cfg.LogWait = -1, true, 0
	cfg.Mounts = []string{os.TempDir() + ":" + os.TempDir()} //nolint:usetesting // all of the tests' folders are below it
	cfg.StartLimit, cfg.ControlLag, cfg.CallTimeout, cfg.NodeLag = 30*time.Second, 10*time.Second, 5*time.Second,
		10*time.Second
	cfg.Grace = time.Second
	cfg.PlaceWait = 6 * time.Second // the scheduler of a busy machine hears late of what has ended
	return cfg
}

// storage is that of a handler for a rig, or for the suite; cfg is looked at each
// time that it is opened.
func storage(cfg *kube.Config) executortest.Env {
	return executortest.Env{
		Site: cfg.Site, Grace: cfg.Grace, Image: cluster.Image, Slack: 10 * time.Second, Patience: patience, Slow: true,
		Merged:  true,
		NoCores: "a pod has its cores as limits (TestJob), which its kubelet holds it to", NoBreak: "a node in trouble is told from a wrong image by words only, so it costs a loss",
		Open: func(t *testing.T) executor.Handler {
			t.Helper()
			var h executor.Handler
			var err error
			if cfg.Watchdog != (kube.Watchdog{}) {
				h, err = kube.OpenWatched(*cfg)
			} else {
				h, err = kube.Open(*cfg)
			}
			if err != nil {
				t.Fatal(err)
			}
			return h
		},
	}
}

func TestConformance(t *testing.T) {
	onReal.enter(t)
	c, _ := onReal.node(t)
	executortest.Run(t, func(t *testing.T) executortest.Env {
		cfg := realConfig(t, c)
		return storage(&cfg)
	})
}
