package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// diskBytes is the size of a site's disk; the image is sparse.
const diskBytes = 512 << 20

// disk is a file system in an image file, mounted in its host's namespace only.
// What was written but not synced is in the kernel's memory and not in the
// image: a copy of the image is what is left after the power fails. The
// journal of the file system is not committed by a timer, so that "not synced"
// really means lost.
type disk struct {
	host  *netlab.Host
	image string
	at    string // mount point
}

func newDisk(ctx context.Context, host *netlab.Host, image, at string) (*disk, error) {
	d := &disk{host, image, at}
	f, err := os.Create(image)
	if err != nil {
		return nil, fmt.Errorf("make disk image: %w", err)
	}
	err = errors.Join(f.Truncate(diskBytes), f.Close())
	if err == nil {
		err = host.Run(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-m", "0", image)
	}
	if err != nil {
		return nil, fmt.Errorf("make disk image: %w", err)
	}
	return d, d.mount(ctx)
}

func (d *disk) mount(ctx context.Context) error {
	return d.host.Run(ctx, "mount", "-t", "ext4", "-o", "loop,commit=900", d.image, d.at)
}

// powerCut replaces the disk by what had reached it. REQUIRES: no process of the
// site is left.
func (d *disk) powerCut(ctx context.Context) error {
	left := d.image + ".left"
	if err := d.host.Run(ctx, "cp", "--sparse=always", d.image, left); err != nil {
		return err
	}
	// Taking the old file system down writes all to the old image, which goes.
	if err := d.close(); err != nil {
		return err
	}
	if err := os.Rename(left, d.image); err != nil {
		return fmt.Errorf("put disk image in place: %w", err)
	}
	return d.mount(ctx)
}

// close unmounts the disk. A process that was killed while it forked holds it
// a moment longer than it can be seen.
func (d *disk) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	return testbed.Await(ctx, "unmount of "+d.at, func() error {
		err := d.host.Do(func() error { return unix.Unmount(d.at, 0) })
		if err == nil || errors.Is(err, unix.EINVAL) { // it is not mounted
			return nil
		}
		_, killErr := killUnder(d.at)
		return errors.Join(err, killErr)
	})
}
