package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// nearlyFull leaves a disk less than a broker wants to have free.
const nearlyFull = 100 << 20

// fill takes all of the disk's free space but some bytes, as somebody else's
// files would.
func (d *disk) fill(left int64) error {
	return d.host.Do(func() error {
		var st unix.Statfs_t
		if err := unix.Statfs(d.at, &st); err != nil {
			return fmt.Errorf("statfs %s: %w", d.at, err)
		}
		f, err := os.OpenFile(filepath.Join(d.at, "filler"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("make filler: %w", err)
		}
		old, err := f.Stat()
		if err == nil {
			free := int64(min(st.Bavail, math.MaxInt64>>20)) * st.Bsize
			err = unix.Fallocate(int(f.Fd()), 0, 0, old.Size()+max(free-left, 0))
		}
		if err != nil && !(left == 0 && errors.Is(err, unix.ENOSPC)) { // then all is taken
			return errors.Join(fmt.Errorf("fill %s: %w", d.at, err), f.Close())
		}
		return f.Close()
	})
}

// empty undoes fill.
func (d *disk) empty() error {
	return d.host.Do(func() error { return os.Remove(filepath.Join(d.at, "filler")) })
}

// fullDisk fills the disk of a site: nearly, then wholly.
func fullDisk(ctx context.Context, r *run) error {
	m := r.members[1]
	n := r.number(m)
	id, err := r.submit(ctx, n, plan.Job{Name: "runs", Count: 1, Length: 6 * time.Second, Home: true})
	if err != nil {
		return err
	}
	r.say("the disk of %s is nearly full", m.Name)
	if err = m.disk.fill(nearlyFull); err != nil {
		return err
	}
	if err = within(ctx, lag, check.NoError, m.Name+" refuses", func() error { return m.refusesForSpace(ctx, r) }); err != nil {
		return err
	}
	err = within(ctx, agreeWithin, check.Progress, id+" ends", func() error {
		job, e := m.Job(ctx, id)
		if e == nil && job.State != "succeeded" {
			e = fmt.Errorf("it is %s", job.State)
		}
		return e
	})
	if err != nil {
		return err
	}
	if err = m.disk.empty(); err != nil {
		return err
	}
	r.say("%s has room again", m.Name)
	if _, err = r.submit(ctx, n, plan.Job{Name: "room", Count: 2, Length: time.Second}); err != nil {
		return err
	}
	return r.noSpaceAtAll(ctx, m)
}

// refusesForSpace is nil once the broker says to clients and to those who send
// them that its disk is full.
func (m *member) refusesForSpace(ctx context.Context, r *run) error {
	var he *testbed.HTTPError
	if err := m.Ready(ctx); !errors.As(err, &he) || he.Status != 503 || !strings.Contains(he.Problem.Detail, "bytes free") {
		return fmt.Errorf("asked whether it is ready it says %v", err) //nolint:errorlint // which may be nil
	}
	a, err := m.Submit(ctx, r.spec(plan.Job{Name: "refused", Count: 1, Tries: 1, OnLoss: check.Fenced}, m.Name))
	if !errors.As(err, &he) || he.Status != 503 || !strings.HasSuffix(he.Problem.Type, ":storage-full") {
		return testbed.Final(fmt.Errorf("it answers a submission with %+v, %v", a, err)) //nolint:errorlint // which may be nil
	}
	return nil
}

// noSpaceAtAll has a broker's write fail: it stops, says why, and starts again
// once there is room, with all that it had. Small writes have their room already
// (node/walfile), so a large one comes from another site.
func (r *run) noSpaceAtAll(ctx context.Context, m *member) error {
	m.mu.Lock()
	m.expects = true
	p := m.broker
	m.mu.Unlock()
	if err := m.disk.fill(0); err != nil {
		return err
	}
	r.say("the disk of %s is full", m.Name)
	if _, err := r.submit(ctx, 1, plan.Job{
		Name: "large", Count: 1, Length: time.Second, Sites: []int{3},
		Env: 100 << 10,
	}); err != nil {
		return err
	}
	if r.zk {
		return r.fullBesideZooKeeper(ctx, m)
	}
	select {
	case <-p.done:
	case <-time.After(readyWait):
		return broke(check.Progress, "%s goes on without a disk: %s", m.Name, m.LogTail(5))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if end := m.LogTail(3); !strings.Contains(end, "no space left on device") || !strings.Contains(end, "make room on the file system of") {
		return broke(check.NoError, "%s ends without its reason and remedy: %s", m.Name, end)
	}
	r.say("%s ended", m.Name)
	if err := m.disk.empty(); err != nil {
		return err
	}
	if err := m.launch(); err != nil {
		return err
	}
	if err := m.awaitReady(ctx); err != nil {
		return broke(check.Progress, "%s does not start after its disk was full: %s", m.Name, err)
	}
	return nil
}

// fullBesideZooKeeper: a broker whose log is elsewhere writes nothing for others'
// jobs. It goes on, takes no jobs, and is ready once there is room.
func (r *run) fullBesideZooKeeper(ctx context.Context, m *member) error {
	m.mu.Lock()
	m.expects = false
	m.mu.Unlock()
	err := within(ctx, lag, check.NoError, m.Name+" refuses", func() error { return m.refusesForSpace(ctx, r) })
	if err != nil {
		return err
	}
	if err := m.disk.empty(); err != nil {
		return err
	}
	if err := m.awaitReady(ctx); err != nil {
		return broke(check.Progress, "%s is not ready after its disk was full: %s", m.Name, err)
	}
	return nil
}
