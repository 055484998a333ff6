//go:build container

package container_test

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// why says what a container does not stop, as executor/DESIGN.md does.
var why = map[string]string{
	"BeRoot":      "an image's own user may be root, without its rights; container.user names another",
	"ForgeTheEnd": "the file that tells the end is the task's user's, too: it deceives its own job",
}

// TestHostile: what attacks from a container fails, or is named in executor/DESIGN.md.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			executortest.Hostile(t, func(t *testing.T) executortest.Env {
				cfg := config(t, e)
				shared := executortest.SharedFolder(t)
				cfg.Pids, cfg.Mounts = 256, []string{shared + ":" + shared}
				cfg.Scratch = executortest.HostileScratch
				env := storage(cfg)
				env.Shared = shared
				return env
			}, why)
		})
	}
}
