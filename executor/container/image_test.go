//go:build container

package container_test

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestWhatImagesSay: what an image says of its programs counts for the task, and
// neither for the first process nor for anything besides the task; an image that
// cannot be run fails its task, and is no trouble of the site.
func TestWhatImagesSay(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			r := open(t, config(t, e))
			image := func(name string, lines ...string) string {
				t.Helper()
				name = "cloudshare.test/" + name + ":latest"
				r.Must(e.Import(t.Context(), name, append(lines, "ENV PATH=/bin")...))
				return name
			}
			id := r.Begin(r.task(image("go", "ENV GOMEMLIMIT=junk", "ENV GODEBUG=junk"), "sh", "-c", "echo $GOMEMLIMIT $GODEBUG $GOTRACEBACK"))
			if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "junk junk\n" {
				t.Errorf("settings of Go programs: got %+v and %q", res, r.Written(id, "stdout"))
			}
			id = r.Begin(r.task(image("user", "USER nobodyhere"), "true"))
			if res := r.AwaitEnd(id); res.Cause != executor.NoStart || !strings.Contains(res.Detail, "nobodyhere") {
				t.Errorf("a user that the image has not: got %+v", res)
			}
			id = r.Begin(r.task(image("folder", "WORKDIR /bin/busybox"), "true"))
			if res := r.AwaitEnd(id); res.Cause != executor.NoStart || !strings.Contains(res.Detail, "/bin/busybox") {
				t.Errorf("a file as working directory: got %+v", res)
			}
			if kind == engines.Podman {
				return // it imports no such image
			}
			id = r.Begin(r.task(image("health", "HEALTHCHECK --interval=1s CMD touch "+box.Work+"/looked"), "sh", "-c", "sleep 3; ls"))
			if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "" {
				t.Errorf("a health check: got %+v and %q", res, r.Written(id, "stdout"))
			}
		})
	}
}

// TestSilentEngine: an engine that is not there when the broker starts is told, and
// what to do about it.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	cfg := config(t, &engines.Engine{Address: "unix:///nowhere/engine.sock"})
	log := new(strings.Builder)
	cfg.Logger = cfg.Logger.Output(log)
	r := open(t, cfg)
	r.Must(r.Close())
	if n := strings.Count(log.String(), "the container engine is away"); n != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
	if s := r.Status(); !strings.Contains(s, "no such file") || !strings.Contains(s, "container.engine") {
		t.Errorf("status %q", s)
	}
}
