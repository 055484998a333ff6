//go:build container

package container_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestBandwidthIsHeld: what another site's container writes to the disk, in its folder and in its own layer, takes as
// long as the site's bound says; the site's own containers are not bounded.
func TestBandwidthIsHeld(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			cfg := config(t, e)
			cfg.IO = attempts.Bandwidth{WriteBytes: 2 << 20, Reads: 1000}
			r := open(t, cfg)
			r.capacity(true)
			if s := r.Status(); !strings.Contains(s, "another site's container has wbps=2097152 riops=1000 of disks /dev/") {
				t.Fatalf("the bound does not hold: %s", s)
			}
			const heldBack = 2 * time.Second // what 6 MiB take at 2 MiB/s, less what is taken in advance
			for _, folder := range []string{"/.cloudshare/work", "/tmp"} {
				id := r.Begin(r.shell("exec 2>&1; dd if=/dev/zero of=" + folder + "/file bs=256k count=24 oflag=direct"))
				res := r.AwaitEnd(id)
				if out := r.Written(id, "stdout"); res.ExitCode != 0 || res.Run < heldBack {
					t.Errorf("in %s: %+v: %s", folder, res, out)
				}
			}
			own := r.shell("echo up; exec sleep 60")
			own.Owner = cfg.Site
			id := r.Begin(own)
			r.AwaitRunning(id)
			if c := inspect(t, e, id); len(c.BlkioDeviceWriteBps)+len(c.BlkioDeviceReadIOps) > 0 {
				t.Errorf("the site's own container is bounded: %+v", c)
			}
			r.Must(r.Stop(t.Context(), id, "enough"))
			if res := r.AwaitEnd(id); res.Cause != executor.Stopped {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// inspect returns what the container of an attempt may use.
func inspect(t *testing.T, e *engines.Engine, id executor.ID) engine.HostConfig {
	t.Helper()
	var list []struct {
		ID     string
		Labels map[string]string
	}
	var c struct{ HostConfig engine.HostConfig }
	text, err := e.Call(t.Context(), http.MethodGet, "/v1.41/containers/json", nil)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Labels["cloudshare.name"] != id.String() {
			continue
		}
		if text, err = e.Call(t.Context(), http.MethodGet, "/v1.41/containers/"+one.ID+"/json", nil); err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.HostConfig
	}
	t.Fatalf("no container of %s among %d", id, len(list))
	return c.HostConfig
}
