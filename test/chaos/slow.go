package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// slowModule is the module of the file system that delays syncs: see its README.
const slowModule = "test/slowfs"

// haveFuse reports whether a disk can be made slow here.
func haveFuse() bool {
	_, err := os.Stat("/dev/fuse")
	return err == nil
}

// buildSlowfs builds the program that mounts slow disks.
func buildSlowfs(ctx context.Context, dir string) (string, error) {
	if !haveFuse() {
		return "", errors.New("a slow disk needs /dev/fuse, which is missing: modprobe fuse, or leave these scenarios out")
	}
	bin := filepath.Join(dir, "slowfs")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", slowModule, "-trimpath", "-buildvcs=false", "-o", bin, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build slowfs: %w\n%s", err, out)
	}
	return bin, nil
}

// slowDisk shows a folder at another place, where each sync takes as long as a
// file says.
type slowDisk struct {
	host      *netlab.Host
	bin       string
	below, at string
	delay     string // path of the file
	server    *exec.Cmd
}

// newSlowDisk mounts one; it is fast until delayed.
func newSlowDisk(host *netlab.Host, bin, below, at string) (*slowDisk, error) {
	d := &slowDisk{host: host, bin: bin, below: below, at: at, delay: at + ".delay"}
	if err := d.set(0); err != nil {
		return nil, err
	}
	return d, d.mount()
}

func (d *slowDisk) mount() error {
	d.server = exec.Command(d.bin, "-delay", d.delay, d.below, d.at)
	d.server.Stderr = os.Stderr
	out, err := d.server.StdoutPipe()
	if err == nil {
		err = d.host.Start(d.server)
	}
	if err != nil {
		return fmt.Errorf("start slowfs: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "mounted" {
		return fmt.Errorf("slowfs did not mount %s: it wrote %q: %w", d.at, line, errors.Join(err, d.server.Wait()))
	}
	return nil
}

// set makes each sync take so much longer from now on.
func (d *slowDisk) set(delay time.Duration) error {
	next := d.delay + ".next"
	err := os.WriteFile(next, []byte(delay.String()), 0o600)
	if err == nil {
		err = os.Rename(next, d.delay)
	}
	if err != nil {
		return fmt.Errorf("make %s slow: %w", d.at, err)
	}
	return nil
}

// close unmounts it; its server ends by that.
func (d *slowDisk) close() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	err := testbed.Await(ctx, "unmount of "+d.at, func() error {
		err := d.host.Do(func() error { return unix.Unmount(d.at, 0) })
		if errors.Is(err, unix.EINVAL) { // it is not mounted
			return nil
		}
		return err
	})
	if err != nil {
		return errors.Join(err, d.server.Process.Kill(), d.server.Wait())
	}
	server := d.server
	d.server = nil
	return server.Wait()
}

// slowDown makes a site's disk slow for a while: some more than a bad disk is,
// some as much as one that is about to fail.
func (r *run) slowDown(ctx context.Context, f plan.Fault, m *member) error {
	delay := 100 * time.Millisecond
	if f.Number%2 == 0 {
		delay = time.Second
	}
	r.say("each sync of %s takes %s longer", m.Name, delay)
	if err := m.slow.set(delay); err != nil {
		return err
	}
	return errors.Join(ignoreEnd(ctx, sleep(ctx, f.For)), m.slow.set(0))
}
