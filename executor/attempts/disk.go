package attempts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FindDisks returns the numbers of the block devices that hold paths, each once, as cgroups name them ("8:0"), and why
// others have none.
func FindDisks(paths ...string) (disks, unbound []string) {
	for _, path := range paths {
		switch disk, err := diskOf(path); {
		case err != nil:
			unbound = append(unbound, err.Error())
		case !slices.Contains(disks, disk):
			disks = append(disks, disk)
		}
	}
	return disks, unbound
}

// DeviceFile returns the path by which an engine knows a block device.
func DeviceFile(disk string) (string, error) {
	text, err := os.ReadFile(filepath.Join(blockDevices, disk, "uevent"))
	if err != nil {
		return "", fmt.Errorf("name of block device %s: %w", disk, err)
	}
	for l := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(l, "DEVNAME="); ok {
			return "/dev/" + strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("block device %s has no name in %s", disk, blockDevices)
}

// blockDevices has a folder for each block device.
const blockDevices = "/sys/dev/block"

// diskOf returns the number of the block device that holds a path, as cgroups name it ("8:0"): the whole disk of a
// partition, since only whole ones can be bounded, and the mapped device of one that a device mapper makes. A file
// system without a device of its own is refused.
func diskOf(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", path, err)
	}
	major, minor := st.Dev_major, st.Dev_minor
	if major == 0 { // of btrfs, overlay, tmpfs, network: the mount may name a device
		source, kind := mountSource(st.Mnt_id)
		dev, ok := deviceAt(source)
		if !ok {
			return "", fmt.Errorf("%s is on %s, which has no disk of its own", path, cmp.Or(kind, "a file system"))
		}
		major, minor = unix.Major(dev), unix.Minor(dev)
	}
	return wholeDisk(fmt.Sprintf("%d:%d", major, minor), blockDevices)
}

// wholeDisk returns the number of the disk of a partition, or the device's own.
func wholeDisk(number, devices string) (string, error) {
	folder, err := filepath.EvalSymlinks(filepath.Join(devices, number))
	if err != nil {
		return "", fmt.Errorf("block device %s: %w", number, err)
	}
	if _, err = os.Stat(filepath.Join(folder, "partition")); errors.Is(err, os.ErrNotExist) {
		return number, nil
	}
	whole, err := os.ReadFile(filepath.Join(filepath.Dir(folder), "dev"))
	if err != nil {
		return "", fmt.Errorf("disk of partition %s: %w", number, err)
	}
	return strings.TrimSpace(string(whole)), nil
}

// deviceAt returns the number of the block device at a path.
func deviceAt(path string) (uint64, bool) {
	var st unix.Stat_t
	if !filepath.IsAbs(path) || unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, false
	}
	return uint64(st.Rdev), true
}

// mountSource returns what is mounted by a mount, and its file system, "" if it is not in /proc.
func mountSource(id uint64) (source, kind string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	for l := range strings.Lines(string(text)) {
		// ID PARENT DEVICE ROOT PLACE OPTIONS [TAG…] - KIND SOURCE SUPEROPTIONS
		first, rest, _ := strings.Cut(l, " - ")
		if f := strings.Fields(rest); len(f) > 1 && strings.HasPrefix(first, fmt.Sprintf("%d ", id)) {
			kind, source = f[0], f[1]
		}
	}
	return source, kind
}
