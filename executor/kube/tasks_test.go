//go:build kube

package kube_test

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// TestTasks: how Jobs end, on nodes that are not there.
func TestTasks(t *testing.T) {
	onShared.enter(t)
	r := open(t, shared, config(t, shared))
	r.cores("kube/fake-1", 7) // ⌊0.7·10⌋
	if res := r.AwaitEnd(r.Begin(r.task())); res.Cause != executor.Exited || res.ExitCode != 0 || res.Run <= 0 {
		t.Errorf("got %+v, want a clean exit", res)
	}
	if res := r.AwaitEnd(r.Begin(r.task("FAKE_EXIT=42"))); res.Cause != executor.Exited || res.ExitCode != 42 || res.Detail == "" {
		t.Errorf("got %+v, want exit code 42", res)
	}
}
