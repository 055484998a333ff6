//go:build container

package container_test

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestScratchIsHeld: another site's container that has too much on the disk fails by that, in its folder and in what it
// changes of its image, also one that a later broker has found; the site's own has no bound.
func TestScratchIsHeld(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, engines.Start(t, kind))
			cfg.Scratch, cfg.Mounts = 8<<20, nil
			r := open(t, cfg)
			r.capacity(true)
			if s := r.Status(); !strings.Contains(s, "one has 8Mi of scratch") {
				t.Errorf("status says %q", s)
			}
			const wait = "; while :; do sleep 1; done"
			for _, script := range []string{
				"head -c 20000000 /dev/zero >file" + wait,
				"head -c 20000000 /dev/zero >/tmp/file" + wait,
				"while :; do head -c 100000 /dev/zero >>/.cloudshare/box/told; done",
				"mkdir a && head -c 5000000 /dev/zero >a/file; head -c 5000000 /dev/zero >/tmp/file" + wait,
			} {
				if res := r.AwaitEnd(r.Begin(r.shell(script))); !isOver(res) {
					t.Errorf("%s: got %+v, want it over its scratch", script, res)
				}
			}
			id := r.Begin(r.shell("echo up; while [ ! -e /go ]; do sleep 1; head -c 9000000 /dev/zero >file; done"))
			r.AwaitRunning(id)
			r.Must(r.Close())
			r.Open()
			if res := r.AwaitEnd(id); !isOver(res) {
				t.Errorf("after a restart: got %+v, want it over its scratch", res)
			}
			for owner, bytes := range map[string]string{"site-1": "4000000", cfg.Site: "20000000"} {
				task := r.shell("head -c " + bytes + " /dev/zero >file; sleep 3")
				task.Owner = owner
				if res := r.AwaitEnd(r.Begin(task)); res.Cause != executor.Exited || res.ExitCode != 0 {
					t.Errorf("within the bounds of %s: got %+v", owner, res)
				}
			}
		})
	}
}

func isOver(res executor.Result) bool {
	return res.Cause == executor.Exited && res.ExitCode == 137 && res.Run > 0 &&
		strings.Contains(res.Detail, "over its scratch: more than 8Mi")
}
