package container

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// TestBoundsOfDisks: the engine is given what the site bounds, of each disk, and nothing else; what does not hold is
// said.
func TestBoundsOfDisks(t *testing.T) {
	var c engine.HostConfig
	r := reach{devices: []string{"/dev/a", "/dev/b"}, unbound: []string{"/x is on nfs"}}
	r.bound(&c, attempts.Bandwidth{WriteBytes: 4, Reads: 9})
	if len(c.BlkioDeviceReadBps)+len(c.BlkioDeviceWriteIOps) > 0 || len(c.BlkioDeviceReadIOps) != 2 ||
		len(c.BlkioDeviceWriteBps) != 2 || c.BlkioDeviceWriteBps[1] != (engine.ThrottleDevice{Path: "/dev/b", Rate: 4}) {
		t.Errorf("got %+v", c)
	}
	cfg := &Config{IO: attempts.Bandwidth{WriteBytes: 4}}
	for want, p := range map[string]presence{
		"has wbps=4 of disks /dev/a, /dev/b; not bounded: /x is on nfs": {reach: r},
		"is not enforced in containers: /x is on nfs":                   {reach: reach{unbound: r.unbound}},
		"is not enforced in containers: the engine says WARNING: No io.max (wbps) support": {
			reach: r, info: engine.Info{Warnings: []string{"WARNING: No swap", "WARNING: No io.max (wbps) support"}},
		},
	} {
		if got := p.ioStatus(cfg); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := p.ioStatus(&Config{}); got != "" {
			t.Errorf("without a bound it says %q", got)
		}
	}
	if r := findReach(&Config{}, "/"); len(r.devices)+len(r.unbound) > 0 {
		t.Errorf("without a bound it looks for %+v", r)
	}
	cfg.Dir = "/proc"
	if r := findReach(cfg, "/nowhere"); len(r.devices) > 0 || len(r.unbound) != 2 {
		t.Errorf("got %+v, want the reasons of two folders", r)
	}
}
