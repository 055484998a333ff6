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
	rootSize   = "size=4m,nr_inodes=64k,mode=755" // folders, links and places of files only, and read-only soon
	sharedSize = "size=64m,nr_inodes=64k,mode=1777"
)

// builder makes a root below a folder.
type builder struct{ root string }

// tree is a copy of what is mounted at a path, or a link, for one place in the new root.
type tree struct {
	fd   int
	to   string
	dir  bool   // else a file
	link string // where it leads, if it is one
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
	shown.parts(p.listed())
	shared.shares(p) // by the broker's user still, which may get where the sandbox's does not
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
	if fd, c.err = copyTree(unix.AT_FDCWD, from, attr, dir); c.err == nil {
		c.trees = append(c.trees, tree{fd: fd, to: to, dir: dir})
	}
}

func (c *copier) devices() {
	for _, name := range devices {
		c.copy("/dev/"+name, "/dev/"+name, device, false)
	}
}

// parts copies what is shown of the system's folders. Links are made, not copied; what has
// gone since it was listed is no error.
func (c *copier) parts(list []string) {
	for _, part := range list {
		kind, path := part[0], part[1:]
		if kind == partLink {
			if to, err := os.Readlink(path); err == nil {
				c.trees = append(c.trees, tree{fd: -1, to: path, link: to})
			}
			continue
		}
		c.copy(path, path, readOnly, kind == partFolder)
		if errors.Is(c.err, unix.ENOENT) {
			c.err = nil
		}
	}
}

// shares copies what the operator named: it must be there. One in another goes on top of
// it, whatever their order.
func (c *copier) shares(p Plan) {
	if c.err = p.Validate(); c.err == nil && len(p.Resolved) != len(p.Share) {
		c.err = errors.New("shares were not resolved")
	}
	for _, dir := range slices.Sorted(slices.Values(p.Share)) {
		if c.err != nil {
			return
		}
		c.share(dir, p.Resolved[slices.Index(p.Share, dir)])
	}
}

func (c *copier) share(dir, from string) {
	at, err := openShare(from)
	if err != nil {
		c.err = fmt.Errorf("share %s: open folder %s: %w", dir, from, err)
		return
	}
	defer unix.Close(at)
	fd, err := copyTree(at, "", writable, true)
	if err != nil {
		c.err = fmt.Errorf("share %s: %w", dir, err)
		return
	}
	c.trees = append(c.trees, tree{fd: fd, to: dir, dir: true})
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

// copyTree copies a file's mount, or a folder's with all that is mounted below it; from ""
// is the open folder at.
func copyTree(at int, from string, attr uint64, dir bool) (int, error) {
	var deep, empty uint
	if dir {
		deep = unix.AT_RECURSIVE
	}
	if from == "" {
		empty = unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(at, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|empty|deep)
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
	if err := p.nameServer(b); err != nil {
		return fmt.Errorf("name its name server: %w", err)
	}
	return sealed(b.root + "/dev")
}

// attach mounts a copy at its place, which it makes.
func (b *builder) attach(t tree) error {
	if t.link != "" {
		return b.link(t)
	}
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

// link makes a link of a folder that is rebuilt.
func (b *builder) link(t tree) error {
	if err := b.mkdir(filepath.Dir(t.to)); err != nil {
		return err
	}
	return os.Symlink(t.link, b.root+t.to)
}

func (b *builder) touch(path string) error {
	if err := b.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return os.WriteFile(b.root+path, nil, 0o600)
}

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
