package sandbox

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

// system are the folders of programs and their settings, seen read-only. Everything else
// of the machine is not there: an allow-list, so that what nobody thought of is hidden.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
	"/sys/devices/system/cpu", "/sys/devices/system/node", // what programs ask for the number of processors
}

// resolver are folders to which /etc/resolv.conf leads on many machines.
var resolver = []string{"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"}

// Sizes of what lies in memory.
const (
	rootSize   = "size=1m,nr_inodes=4k,mode=755" // folders only, and read-only soon
	sharedSize = "size=64m,nr_inodes=64k,mode=1777"
)

// builder makes a root below a folder.
type builder struct{ root string }

// tree is a copy of what is mounted at a path, for one place in the new root.
type tree struct {
	fd  int
	to  string
	dir bool // else a file
}

// makeRoot replaces this process's root by one that holds what a task may see, becomes
// the sandbox's user, and leaves the working directory.
func (p Plan) makeRoot() error {
	// What is mounted from here on is mounted nowhere else.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	shown, shared, own := &copier{}, &copier{}, &copier{}
	shown.devices()
	shown.folders(p.visible())
	shared.shares(p.Share) // by the broker's user still, which may get where the sandbox's does not
	if err := cmp.Or(shown.err, shared.err); err != nil {
		return err
	}
	if err := p.becomeUser(); err != nil {
		return err
	}
	slot, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open slot: %w", err)
	}
	defer unix.Close(slot)
	own.copy(WorkFolder, Work, writable, true)
	own.copy(TempFolder, "/tmp", writable, true)
	if own.err != nil {
		return own.err
	}
	return p.build(slices.Concat(shown.trees, own.trees, shared.trees), slot) // shares may lie in /tmp
}

// build makes the root of these trees and enters it.
func (p Plan) build(trees []tree, slot int) error {
	b, err := newBuilder()
	if err != nil {
		return err
	}
	if err = p.fill(b, trees); err != nil {
		return err
	}
	if err = b.enter(); err != nil {
		return err
	}
	return unix.Fchdir(slot)
}

// copier copies what the new root shows, before an empty root covers any of it.
type copier struct {
	trees []tree
	err   error // the first one; nothing is copied after it
}

func (c *copier) copy(from, to string, attr uint64, dir bool) {
	if c.err != nil {
		return
	}
	var fd int
	if fd, c.err = copyTree(from, attr, dir); c.err == nil {
		c.trees = append(c.trees, tree{fd, to, dir})
	}
}

func (c *copier) devices() {
	for _, name := range devices {
		c.copy("/dev/"+name, "/dev/"+name, device, false)
	}
}

// folders copies those that are there.
func (c *copier) folders(list []string) {
	for _, dir := range list {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() { // what cannot be looked at cannot be used
			c.copy(dir, dir, readOnly, true)
		}
	}
}

// shares copies what the operator named: it must be there. One in another goes on top of
// it, whatever their order.
func (c *copier) shares(list []string) {
	for _, dir := range slices.Sorted(slices.Values(list)) {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			c.err = fmt.Errorf("share %s: not a folder here: %w", dir, cmp.Or(err, error(unix.ENOTDIR)))
			return
		}
		c.copy(dir, dir, writable, true)
	}
}

// visible returns the folders that are seen read-only, if they are there.
func (p Plan) visible() []string {
	if p.HostNetwork {
		return slices.Concat(system, resolver)
	}
	return system
}

// Attributes of mounts.
const (
	writable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = writable | unix.MOUNT_ATTR_RDONLY
	device   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// copyTree copies a file's mount, or a folder's with all that is mounted below it.
func copyTree(from string, attr uint64, dir bool) (int, error) {
	var deep uint
	if dir {
		deep = unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|deep)
	if err != nil {
		return 0, fmt.Errorf("bind %s: %w", from, err)
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|deep, &unix.MountAttr{Attr_set: attr})
	if err != nil {
		return 0, fmt.Errorf("bind %s: restrict it (Linux 5.12 or later): %w", from, err)
	}
	return fd, nil
}

// newBuilder mounts an empty root on a folder that every machine has.
func newBuilder() (*builder, error) {
	var errs []error
	for _, place := range []string{"/tmp", "/var/tmp", "/mnt", "/usr"} {
		err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootSize)
		if err == nil {
			return &builder{root: place}, nil
		}
		errs = append(errs, fmt.Errorf("mount an empty root on %s: %w", place, err))
	}
	return nil, errors.Join(errs...)
}

// fill puts in what a task may see.
func (p Plan) fill(b *builder, seen []tree) error {
	if err := errors.Join(b.makeDev(), b.proc(), b.mkdir("/var"), os.Symlink("/tmp", b.root+"/var/tmp")); err != nil {
		return err
	}
	for _, t := range seen {
		if err := b.attach(t); err != nil {
			return err
		}
	}
	for _, dir := range system { // those that are links, as /bin to usr/bin
		if to, err := os.Readlink(dir); err == nil {
			if err = os.Symlink(to, b.root+dir); err != nil {
				return err
			}
		}
	}
	for _, path := range p.Hide {
		if err := b.hide(path); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return sealed(b.root + "/dev")
}

// attach mounts a copy at its place, which it makes.
func (b *builder) attach(t tree) error {
	defer unix.Close(t.fd)
	place := b.mkdir
	if !t.dir {
		place = b.touch
	}
	if err := place(t.to); err != nil {
		return fmt.Errorf("make place for %s: %w", t.to, err)
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, b.root+t.to, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach %s: %w", t.to, err)
	}
	return nil
}

func (b *builder) touch(path string) error { return os.WriteFile(b.root+path, nil, 0o600) }

func (b *builder) mkdir(path string) error { return os.MkdirAll(b.root+path, 0o755) }

// proc mounts the process table of the sandbox's own pid namespace.
func (b *builder) proc() error {
	if err := b.mkdir("/proc"); err != nil {
		return err
	}
	err := unix.Mount("proc", b.root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil {
		return fmt.Errorf("mount /proc (a service with ProtectKernelTunables or ProtectKernelLogs, or an engine that masks parts of it, forbids that): %w", err)
	}
	return nil
}

// devices are what every program expects.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// makeDev makes /dev but for the devices.
func (b *builder) makeDev() error {
	dev := b.root + "/dev"
	if err := b.mkdir("/dev"); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, rootSize); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := b.mkdir(SharedMemory); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", b.root+SharedMemory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, sharedSize); err != nil {
		return fmt.Errorf("mount %s: %w", SharedMemory, err)
	}
	return nil
}

// hide covers what must not be seen, if it can be seen at all.
func (b *builder) hide(path string) error {
	st, err := os.Lstat(b.root + path)
	if err != nil {
		return nil //nolint:nilerr // not there, or behind a folder that this user cannot pass: nobody inside can
	}
	if !st.IsDir() {
		return unix.Mount(b.root+"/dev/null", b.root+path, "", unix.MS_BIND, "")
	}
	return unix.Mount("tmpfs", b.root+path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=4k,nr_inodes=1,mode=0")
}

// enter makes it the root, and lets go of the old one.
func (b *builder) enter() error {
	if err := sealed(b.root); err != nil {
		return err
	}
	if err := unix.Chdir(b.root); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one lies on top of the new one then
		return fmt.Errorf("enter: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return nil
}

// sealed makes a mount, and none below it, read-only.
func sealed(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("make %s read-only (Linux 5.12 or later): %w", strings.TrimPrefix(path, "/"), err)
	}
	return nil
}
