package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/executor/executortest"
)

// contained is a handler that runs all tasks in sandboxes, which share one folder.
func contained(t *testing.T) executortest.Env {
	t.Helper()
	folder := shared(t)
	env := suite(func(c *Config) { c.Contain, c.Sandbox.Share = ContainAll, []string{folder} })(t)
	env.Shared = folder
	return env
}

// shared makes a folder that tasks of any user can write.
func shared(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConformanceInSandboxes: a task in a sandbox is a task like any other.
func TestConformanceInSandboxes(t *testing.T) { executortest.Run(t, contained) }

// TestHostile: what attacks from a sandbox fails.
func TestHostile(t *testing.T) { executortest.Hostile(t, contained, nil) }
