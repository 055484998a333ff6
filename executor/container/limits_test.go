//go:build container

package container_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestContained: what a task sees and may do, at both engines.
func TestContained(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, engines.Start(t, kind))
			cfg.Mounts, cfg.ReadOnly, cfg.Pids = nil, true, 64
			cpus := attempts.AllowedCPUs()
			cfg.CPUs, cfg.Cores = cpus, len(cpus)
			r := open(t, cfg)
			for script, want := range map[string]string{
				"grep -E 'CapEff|CapPrm|CapBnd' /proc/self/status | grep -vc 0000000000000000": "0",
				"grep NoNewPrivs /proc/self/status":                                            "NoNewPrivs:\t1",
				"nproc":                                                                        "1",
				"ls -d /sys/class/net/*":                                                       "/sys/class/net/lo",
				"touch /x || echo denied":                                                      "denied",
				"touch /tmp/x && echo written":                                                 "written",
				"touch here && pwd":                                                            "/.cloudshare/work",
				"echo x >/.cloudshare/run/init || echo denied":                                 "denied",
				"rm /.cloudshare/box/told || echo denied":                                      "denied",
				"kill -9 1; kill -STOP 1; echo alive":                                          "alive",
				"cat /proc/1/environ || echo hidden":                                           "hidden",
			} {
				if got := r.said(script); got != want {
					t.Errorf("%s: got %q, want %q", script, got, want)
				}
			}
			if got := r.said("(for i in $(seq 100); do sleep 5 & done; wait; echo all) 2>&1"); !strings.Contains(got, "can't fork") {
				t.Errorf("a hundred processes: got %q, want some denied", got)
			}
		})
	}
}

// TestOutOfMemory says so; the watchdog outlives its task, and has room of its own
// beside a small one.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	r := open(t, config(t, engines.Start(t, engines.Docker)))
	task := r.shell("tail -c 200m /dev/zero | wc -c; exit 9")
	task.Command = []string{"tail", "-c", "200m", "/dev/zero"}
	task.Need.MemMiB = 32
	if res := r.AwaitEnd(r.Begin(task)); res.Cause != executor.Exited || !strings.Contains(res.Detail, "out of memory (limit 32Mi)") {
		t.Errorf("got %+v, want it out of memory", res)
	}
	small := r.task(engines.Image, "/bin/true")
	small.Need.MemMiB = 1
	if res := r.AwaitEnd(r.Begin(small)); res.Cause != executor.Exited || res.ExitCode != 0 {
		t.Errorf("with 1 MiB: got %+v", res)
	}
}

// TestShareOfMemory: another site's container that asks for no memory has a share by its cores; the site's own has no
// limit, as ever.
func TestShareOfMemory(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			cfg := config(t, e)
			cfg.MemMiB = 128
			r := open(t, cfg)
			r.capacity(true)
			if s := r.Status(); !strings.Contains(s, "that asks for no memory has a share by its cores") {
				t.Errorf("status says %q", s)
			}
			for owner, want := range map[string]string{"site-9": "limit 64Mi, a share by its cores", cfg.Site: ""} {
				task := r.task(engines.Image, "dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1")
				task.Owner = owner
				res := r.AwaitEnd(r.Begin(task))
				if !strings.Contains(res.Detail, want) || (res.ExitCode == 0) != (want == "") {
					t.Errorf("of %s: got %+v, want %q", owner, res, want)
				}
			}
		})
	}
}

// TestUser: files of another user are removed with the private directory.
func TestUser(t *testing.T) {
	t.Parallel()
	cfg := config(t, engines.Start(t, engines.Docker))
	cfg.User = "4711:4712"
	r := open(t, cfg)
	id := r.Begin(r.shell("id -u; id -g; mkdir -p a/b && touch a/b/c && chmod 0 a/b && echo made"))
	if res := r.AwaitEnd(id); res.ExitCode != 0 || r.Written(id, "stdout") != "4711\n4712\nmade\n" {
		t.Errorf("got %+v and %q", res, r.Written(id, "stdout"))
	}
	r.said("true") // the one before is being cleaned up
	left, err := os.ReadDir(cfg.Dir + "/attempts/" + id.String() + "/work")
	if err == nil && len(left) > 0 {
		t.Errorf("left in the private directory: %v", left)
	}
}

// TestImagePolicy: refused at once, with the reason.
func TestImagePolicy(t *testing.T) {
	t.Parallel()
	cfg := config(t, engines.Start(t, engines.Docker))
	cfg.Images = container.Images{Allow: []string{"cloudshare.test/*"}, Pull: container.PullNever}
	r := open(t, cfg)
	for image, why := range map[string]string{
		"alpine":                   "docker.io/library/alpine is not among those that this site allows",
		"cloudshare.test/absent:1": "not here, and this site fetches none",
		"No Image":                 "not a name of an image",
	} {
		if err := r.Start(t.Context(), r.task(image, "true")); !errors.Is(err, executor.ErrUnfit) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want ErrUnfit: %s", image, err, why)
		}
	}
	if got := r.said("echo allowed"); got != "allowed" {
		t.Errorf("got %q", got)
	}
}
