package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// TestStatusOfBandwidth: a bound that does not hold is said, with the reason, and none is not.
func TestStatusOfBandwidth(t *testing.T) {
	cfg := config(t)
	cfg.NoCgroups = true
	if s := open(t, cfg).Status(); strings.Contains(s, "sandbox.io") {
		t.Errorf("no bound is asked for, and it says %q", s)
	}
	cfg = config(t)
	cfg.NoCgroups, cfg.IO.Writes = true, 5
	if s := open(t, cfg).Status(); !strings.Contains(s, "sandbox.io is not enforced: cgroups are switched off") {
		t.Errorf("%q does not say that nothing is bounded", s)
	}
	some := bandwidth{
		has: true, most: attempts.Bandwidth{WriteBytes: 4, Reads: 9}, disks: []string{"8:0"}, unbound: []string{"/x is on nfs"},
	}
	want := "; a task in a sandbox has wbps=4 riops=9 of disks 8:0 (io.max); not bounded: /x is on nfs"
	if got := some.status(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	some.direct = "no memory"
	want = "; a task in a sandbox has wbps=4 riops=9 of disks 8:0 (io.max), but writes as it likes through the page cache: " +
		"no memory; not bounded: /x is on nfs"
	if got := some.status(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	reads := bandwidth{has: true, most: attempts.Bandwidth{ReadBytes: 4}, disks: []string{"8:0"}, direct: "no memory"}
	if got := reads.status(); strings.Contains(got, "cache") {
		t.Errorf("no write is bounded, and it says %q", got)
	}
	if m := parseIO(some.argument()[1]); m.most != "wbps=4 riops=9" || len(m.disks) != 1 || m.disks[0] != "8:0" {
		t.Errorf("a supervisor reads %+v", m)
	}
}

// TestBandwidthNeedsMemory: without the controller of memory, io.max does not hold what is written through the page
// cache, and the status says so.
func TestBandwidthNeedsMemory(t *testing.T) {
	for controllers, held := range map[string]bool{"io memory pids": true, "cpu io pids": false} {
		own := t.TempDir()
		for _, dir := range []string{own, filepath.Join(own, "group")} {
			err := os.MkdirAll(dir, 0o700)
			for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": ""} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var c cgroups
		c.probeV2(own, "group")
		c.io.most, c.io.disks = attempts.Bandwidth{Writes: 5}, []string{"8:0"}
		s := c.io.status()
		if says := strings.Contains(s, "page cache: cgroup "+own+" has no memory controller"); says == held || !c.io.has {
			t.Errorf("with %s: %q", controllers, s)
		}
	}
}

// onDisk is a handler of sandboxes on the guest's disk, nil = there is none here.
func onDisk(t *testing.T, change func(*Config)) *opened {
	t.Helper()
	place := os.Getenv(guestVar)
	if place == "" {
		return nil // only the status can be looked at, by TestStatusOfBandwidth
	}
	dir := filepath.Join(place, fmt.Sprint(filepath.Base(t.Name()), "-", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if rerr := os.RemoveAll(dir); rerr != nil {
			t.Error(rerr)
		}
	})
	cfg := config(t)
	cfg.Dir, cfg.Contain = dir, ContainAll
	change(&cfg)
	o, _ := adopted(t, cfg)
	return o
}

// written returns how many bytes the group of an attempt's sandbox has written to disks.
func (o *opened) written(task executor.Task) (n int64) {
	o.Helper()
	stat := filepath.Join(o.groups.kill, o.slotOf(task).name, taskGroup, "io.stat")
	if err := eachLine(stat, func(l string) {
		for word := range strings.FieldsSeq(l) {
			if v, ok := strings.CutPrefix(word, "wbytes="); ok {
				more, _ := strconv.ParseInt(v, 10, 64)
				n += more
			}
		}
	}); err != nil {
		o.Fatal(err)
	}
	return n
}

// heldBack is what 6 MiB take at 2 MiB/s, or 120 reads at 40/s, less what is taken in advance.
const heldBack = 2 * time.Second

// TestBandwidthIsHeld: what a task reads and writes of the disk takes as long as its bound says, with the page cache
// and without; its supervisor is not held back, nor is the end of a task that is stopped meanwhile.
func TestBandwidthIsHeld(t *testing.T) {
	o := onDisk(t, func(c *Config) { c.IO = attempts.Bandwidth{WriteBytes: 2 << 20, Reads: 40} })
	if o == nil {
		return
	}
	if !strings.Contains(o.Status(), "wbps=2097152 riops=40 of disks 259:0 (io.max)") {
		t.Fatalf("the bound does not hold: %s", o.Status())
	}
	for n, script := range []string{
		"dd if=/dev/zero of=file bs=256k count=24 oflag=direct",
		"dd if=/dev/zero of=file bs=256k count=24 conv=fsync",
		"dd if=/dev/zero of=file bs=64k count=15 oflag=direct; dd if=file of=/dev/null bs=8k iflag=direct",
	} {
		r := o.run(shell(uint32(n), "exec 2>&1; "+script))
		if r.ExitCode != 0 || r.Cause != executor.Exited {
			t.Fatalf("%s: %+v: %s", script, r, o.output(shell(uint32(n), "")))
		}
		if r.Run < heldBack {
			t.Errorf("%s took only %s: %s", script, r.Run, o.output(shell(uint32(n), "")))
		}
	}
	slow := shell(9, "exec dd if=/dev/zero of=file bs=100M count=1 oflag=direct")
	before := o.written(shell(0, ""))
	o.begin(slow)
	if !eventually(time.Minute, func() bool { return o.written(slow) > before }) {
		t.Fatal("it writes nothing")
	}
	began := time.Now()
	o.halt(slow)
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("a task that waits for the disk ended after %s", took)
	}
	after := shell(10, "dd if=/dev/zero of=file bs=256k count=24 oflag=direct 2>&1")
	if r := o.run(after); r.ExitCode != 0 || r.Run < heldBack {
		t.Errorf("after a stop: %+v, want the bound to hold again", r)
	}
}
