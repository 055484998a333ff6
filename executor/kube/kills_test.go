//go:build kube

package kube_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/executor/kube"
)

// beBroker is the process that TestNothingIsLeft kills.
func beBroker(dir string) {
	kube.CaptureLogs(zerolog.Nop())
	h, err := kube.Open(killConfig(dir, os.Getenv("CLUSTER")))
	if err != nil {
		panic(err)
	}
	executortest.BeBroker(h, func(executor.ID) executor.Task {
		return executor.Task{
			Owner: "site-1", Site: "site-2", Machine: "kube/fake-1", Need: executor.Resources{MilliCPU: 1000},
			Image: "example.org/task:1", Command: []string{"run"}, Env: map[string]string{"FAKE_RUNS": "200ms"},
		}
	})
}

func killConfig(dir, cluster string) kube.Config {
	return kube.Config{
		Keeping: books.Keeping{Dir: filepath.Join(dir, "kube"), Site: "site-2"},
		Cluster: cluster, Namespace: "kills", LogWait: time.Millisecond,
	}
}

// TestNothingIsLeft: brokers are killed a hundred times at any moment while they
// start and adopt tasks. Then no Job and no pod is left, and each attempt has one
// end.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := shared.Namespace(t.Context(), "kills"); err != nil {
		t.Fatal(err)
	}
	env := []string{"BE_BROKER=" + dir, "CLUSTER=" + shared.Kubeconfig()}
	executortest.KillBrokers(t, 500*time.Millisecond, env, func(killed int) bool { return killed < executortest.Kills })
	r := open(t, shared, killConfig(dir, shared.Kubeconfig()))
	r.EndAll()
	states := r.Open()
	r.noJobs()
	ran := 0
	for _, st := range states {
		if st.Running {
			t.Errorf("%s has no end", st.ID)
			continue
		}
		if !st.Ended.Started.IsZero() {
			ran++
		}
	}
	t.Logf("%d attempts, %d of them ran", len(states), ran)
	if ran < executortest.Kills/2 {
		t.Errorf("only %d tasks ran: the kills came too early to show anything", ran)
	}
}
