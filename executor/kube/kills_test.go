//go:build kube

package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// beBroker is the process that TestNothingIsLeft kills. Every other task is another
// site's.
func beBroker(dir string) {
	kube.CaptureLogs(zerolog.Nop())
	h, err := kube.Open(killConfig(dir, os.Getenv("CLUSTER")))
	if err != nil {
		panic(err)
	}
	executortest.BeBroker(h, func(id executor.ID) executor.Task {
		t := executor.Task{
			Owner: "site-1", Site: "site-2", Machine: "kube/real-1", Need: executor.Resources{MilliCPU: 200},
			Image: cluster.Image, Command: []string{"/bin/sh", "-c", executortest.Mark(dir, id) + "; sleep 0.2"},
		}
		if id.Task%2 == 0 {
			t.Timeout = time.Minute
			bound, _ := h.Bound(t)
			t.Fence = executor.Boottime() + int64(bound+time.Second)
		}
		return t
	})
}

func killConfig(dir, cluster string) kube.Config {
	return kube.Config{
		Keeping: attempts.Keeping{Dir: filepath.Join(dir, "kube"), Site: "site-2"},
		Cluster: cluster, Namespace: "kills", LogWait: time.Millisecond, Threshold: -1, Mounts: []string{dir + ":" + dir},
	}
}

// TestNothingIsLeft: brokers are killed again and again at any moment while they
// start and adopt tasks. Then no Job, no pod and no process of one is left, no attempt
// ran twice, and each that ran has an end that says so.
func TestNothingIsLeft(t *testing.T) {
	onOther.enter(t)
	c, node := onOther.node(t)
	dir := t.TempDir()
	if err := c.Namespace(t.Context(), "kills"); err != nil {
		t.Fatal(err)
	}
	executortest.KillBrokers(t, dir, "BE_BROKER="+dir, "CLUSTER="+c.Kubeconfig())
	r := open(t, c, killConfig(dir, c.Kubeconfig()))
	r.EndAll()
	states := r.Open()
	r.noJobs()
	r.await("no process is left", func() error {
		if left := node.Runs(); len(left) > 0 {
			return fmt.Errorf("%q runs", left)
		}
		return nil
	})
	executortest.RanOnce(t, dir, states, func(r *executor.Result) bool {
		return !r.Started.IsZero() ||
			r.Cause == executor.Vanished
	})
}
