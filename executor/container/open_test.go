//go:build container

package container_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// patience bounds every wait; nothing should come near it, but on the processors in software of a guest.
var patience = map[bool]time.Duration{false: time.Minute, true: 10 * time.Minute}[os.Getenv("CLOUDSHARE_CGROUP_GUEST") != ""]

// rig is a handler on an engine and what it has told.
type rig struct {
	*executortest.Rig
	cfg container.Config
}

func open(t *testing.T, cfg container.Config) *rig {
	t.Helper()
	env := storage(cfg)
	env.Patience = patience
	r := &rig{executortest.NewRig(t, env), cfg}
	t.Cleanup(func() { r.Must(r.Close()) })
	return r
}

func (r *rig) task(image string, command ...string) executor.Task {
	t := r.Task("container", command...)
	t.Image = image
	return t
}

func (r *rig) shell(script string) executor.Task {
	return r.task(engines.Image, "/bin/sh", "-c", script)
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
	r.Hear("a change of capacity", func() bool { return (len(r.Capacity()) > 0) == some })
}

// said runs a script and returns what it wrote.
func (r *rig) said(script string) string {
	r.Helper()
	r.capacity(true) // at first the engine has not been asked
	id := r.Begin(r.shell(script))
	r.AwaitEnd(id)
	return strings.TrimSpace(r.Written(id, "stdout"))
}
