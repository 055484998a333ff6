//go:build container

package container_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestFetch: an image that is not there is fetched, which is told; its own
// entrypoint and environment count. One that nobody has fails the task with the
// registry's words, and a registry that cannot be reached is a loss.
func TestFetch(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			registry := engines.StartRegistry(t)
			registry.Hold = make(chan struct{})
			r := open(t, config(t, engines.Start(t, kind, engines.Insecure(registry.Address))))

			given := r.Begin(r.task(registry.Image()))
			r.await(registry.Asked)
			r.Must(r.Stop(t.Context(), given, "no longer wanted"))
			if res := r.AwaitEnd(given); res.Cause != executor.Stopped || !strings.Contains(res.Detail, "no longer wanted") {
				t.Errorf("stopped while it was fetched: got %+v", res)
			}
			id := r.Begin(r.task(registry.Image()))
			r.Hear("the fetching", func() bool { return strings.Contains(r.Doing[id], "fetching image "+registry.Image()) })
			close(registry.Hold)
			if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "from the image\n" {
				t.Errorf("got %+v and %q", res, r.Written(id, "stdout"))
			}
			again := r.Begin(r.task(registry.Image(), "/bin/sh", "-c", "echo $FROM_IMAGE"))
			if res := r.AwaitEnd(again); res.ExitCode != 0 || r.Written(again, "stdout") != "yes\n" {
				t.Errorf("got %+v and %q", res, r.Written(again, "stdout"))
			}
			registry.Overloaded.Store(true)
			passing := r.Begin(r.task(registry.Address+"/task:2", "true"))
			r.Hear("the next try", func() bool {
				return strings.Contains(r.Doing[passing], "503") && strings.Contains(r.Doing[passing], "tried again in")
			})
			registry.Overloaded.Store(false)
			if res := r.AwaitEnd(passing); res.ExitCode != 0 {
				t.Errorf("a registry that is overloaded for a moment: got %+v", res)
			}
			absent := r.Begin(r.task(registry.Address+"/absent:1", "true"))
			if res := r.AwaitEnd(absent); res.Cause != executor.NoStart || !strings.Contains(res.Detail, "/absent:1") {
				t.Errorf("absent: got %+v", res)
			}
			away := r.Begin(r.task("127.0.0.1:1/task:1", "true"))
			if res := r.AwaitEnd(away); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "127.0.0.1:1") {
				t.Errorf("no registry: got %+v", res)
			}
		})
	}
}

// TestRegistryStalls in mid-pull: the task is given up when its image has stopped coming
// for too long, and the engine goes on for others.
func TestRegistryStalls(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			registry := engines.StartRegistry(t)
			registry.Hold = make(chan struct{})
			cfg := config(t, engines.Start(t, kind, engines.Insecure(registry.Address)))
			cfg.PullSilence = 3 * time.Second
			r := open(t, cfg)
			r.capacity(true) // a busy engine may not have answered yet
			id := r.Begin(r.task(registry.Image()))
			if res := r.AwaitEnd(id); res.Cause != executor.Stopped && res.Cause != executor.Vanished ||
				!strings.Contains(res.Detail, "told nothing for 3s") {
				t.Errorf("got %+v, want a loss that says so", res)
			}
			if res := r.AwaitEnd(r.Begin(r.shell("exit 3"))); res.ExitCode != 3 {
				t.Errorf("another task meanwhile: got %+v", res)
			}
			close(registry.Hold)
			if res := r.AwaitEnd(r.Begin(r.task(registry.Image()))); res.ExitCode != 0 || res.Cause != executor.Exited {
				t.Errorf("when the registry is back: got %+v", res)
			}
		})
	}
}
