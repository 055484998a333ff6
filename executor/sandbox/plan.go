package sandbox

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Places of a task's own in its sandbox.
const (
	Root = "/.cloudshare"
	Work = Root + "/work" // the attempt's private directory

	SharedMemory = "/dev/shm"
)

// Folders of a slot, outside, that its sandbox binds: they must exist and belong to
// the sandbox's user before [Plan.Enter].
const (
	WorkFolder = "work" // seen as Work
	TempFolder = "tmp"  // seen as /tmp and /var/tmp
)

// Plan is what a sandbox is made of. The zero value hides everything but the system's
// programs, and has no network.
type Plan struct {
	// UID and GID are the host's ids of all of the sandbox's processes, and theirs
	// inside. Invariant: never 0.
	UID, GID int
	// Become: they are not the broker's, which is root and so may give them away.
	Become bool
	// Share are folders seen writable at the same path.
	Share []string
	// Resolved are the folders to which Share leads, in its order: [Plan.Resolve] finds them.
	Resolved []string `json:",omitempty"`
	// Hide are folders and files that nobody inside may see, wherever they are, and by
	// whatever links.
	Hide []string
	// Shown are the parts of the system's folders that are shown: [Plan.List] finds them.
	Shown []string `json:",omitempty"`
	// HostNetwork: the network of the machine, else none beyond loopback, but for what
	// GiveDevice adds.
	HostNetwork bool
	// Outbound: GiveDevice makes an interface, and what has its other end answers for names.
	Outbound bool `json:",omitempty"`
	// Processes bounds the processes and threads inside; 0 = no bound but the machine's.
	Processes uint64
	// Grouped: a cgroup bounds them already, else Enter does, its caller with them.
	Grouped bool
}

// Validate names the first thing that cannot be.
func (p Plan) Validate() error {
	if p.UID <= 0 || p.GID <= 0 {
		return fmt.Errorf("sandbox: user %d, group %d: strangers' work runs as neither root nor its group", p.UID, p.GID)
	}
	for _, dir := range slices.Concat(p.Share, p.Hide) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("sandbox: folder %q: give a whole path without \"..\", and not / itself", dir)
		}
	}
	for _, part := range p.Shown {
		if len(part) < 2 || part[1] != '/' {
			return fmt.Errorf("sandbox: %q is no part of a system's folder", part)
		}
	}
	for _, dir := range p.Share {
		if slices.Contains(system, dir) {
			return fmt.Errorf("sandbox: share %s: tasks see the machine's there, read-only: share a folder in it", dir)
		}
		if within("/run", dir) || within("/var/run", dir) {
			return fmt.Errorf("sandbox: share %s: it has the sockets of this machine's services: share a folder in it", dir)
		}
		if own := ownPlace(dir); own != "" {
			return fmt.Errorf("sandbox: share %s: tasks have a %s of their own there", dir, own)
		}
		for _, secret := range p.Hide {
			if within(secret, dir) || within(dir, secret) {
				return fmt.Errorf("sandbox: share %s: it holds, or lies in, %s, which is the broker's own: share another folder", dir, secret)
			}
		}
	}
	return nil
}

// ownPlace returns which of the places that a sandbox has of its own holds path.
func ownPlace(path string) string {
	for _, own := range []string{"/proc", "/dev", "/sys", "/var/tmp", Root} {
		if within(path, own) {
			return own
		}
	}
	return ""
}

// within reports whether path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// Encode returns the plan as one argument of a command line.
func (p Plan) Encode() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode %+v: %v", p, err)) // strings and numbers always encode
	}
	return string(b)
}

// Decode reads what Encode wrote.
func Decode(text string) (p Plan, err error) {
	if err = json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read sandbox's plan: %w", err)
	}
	return p, p.Validate()
}

// Attributes are those with which the first process of the sandbox is started: it has
// all capabilities in its namespaces, none outside, and calls Enter. The user is mapped
// to itself, so nothing inside is ever root, not even of the namespace.
func (p Plan) Attributes() *syscall.SysProcAttr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if !p.HostNetwork {
		flags |= unix.CLONE_NEWNET
	}
	a := &syscall.SysProcAttr{
		Setsid: true, Cloneflags: flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: p.UID, HostID: p.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: p.GID, HostID: p.GID, Size: 1}},
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE, // for Enter
			unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE, // to see all that those inside have on the disk
		},
	}
	if p.Become { // Enter does
		a.GidMappingsEnableSetgroups = true
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_SETUID, unix.CAP_SETGID)
	}
	return a
}
