//go:build kube

package kube_test

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/executortest"
)

// why says what a pod under a watchdog does not stop, as executor/DESIGN.md does.
var why = map[string]string{
	"TermTheInit":   "kubelets stop a pod by TERM; a task that sends it ends itself",
	"ReachLoopback": "pods have the cluster's network, with routes; its NetworkPolicy says where to",
	"FillTheDisk":   "kubelets bound the private directory (kube.scratch) and evict pods for it: TestOutcomes",
	"BeRoot":        "an image's own user may be root, without its rights; kube.user names another",
}

// TestHostile: what attacks from a pod fails, or is named in executor/DESIGN.md.
func TestHostile(t *testing.T) {
	onOther.enter(t)
	c, n := onOther.node(t)
	executortest.Hostile(t, func(t *testing.T) executortest.Env {
		cfg := watched(t, c, n, realConfig(t, c))
		shared := executortest.SharedFolder(t)
		cfg.StartLimit, cfg.Mounts = time.Minute, []string{shared + ":" + shared}
		env := storage(&cfg)
		env.Shared = shared
		env.Open = func(t *testing.T) executor.Handler { return openForeign(t, cfg) }
		return env
	}, why)
}
