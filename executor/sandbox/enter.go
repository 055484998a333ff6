package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter makes this process the first of a sandbox, for good. The caller was started by
// Attributes in a slot's folder, which stays its working directory, though no path leads
// there any more. Whatever it opened before stays open.
// REQUIRES: nothing else runs in this process yet.
func (p Plan) Enter() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("make a sandbox: process %d is not the first of a pid namespace", os.Getpid())
	}
	_ = unix.Sethostname([]byte(hostname)) // a service with ProtectHostname keeps the machine's
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"make a root of its own", p.makeRoot},
		{"bring up loopback", p.raiseLoopback},
		{"forbid namespaces inside", forbidNamespaces},
		{"set limits", p.setLimits},
		{"drop signals from inside", dropFaults},
		{"close this process to others", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		{"refuse system calls", RefuseCalls},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("make a sandbox: %s: %w", step.what, err)
		}
	}
	return nil
}

// becomeUser leaves root and its groups, if a broker that is root has started this
// process: only now, because only root gets into the slot's folder.
func (p Plan) becomeUser() error {
	if !p.Become {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setresgid(p.GID, p.GID, p.GID); err != nil {
		return fmt.Errorf("become group %d: %w", p.GID, err)
	}
	if err := syscall.Setresuid(p.UID, p.UID, p.UID); err != nil {
		return fmt.Errorf("become user %d: %w", p.UID, err)
	}
	return nil
}

// hostname is every sandbox's: the machine's own tells strangers where they are.
const hostname = "localhost"

// raiseLoopback brings the interface of a new network namespace up.
func (p Plan) raiseLoopback() error {
	if p.HostNetwork {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// forbidNamespaces keeps those inside from user namespaces of their own, in which they
// would have capabilities and reach much of the kernel that nobody else does.
func forbidNamespaces() error {
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

// setLimits sets what each process inside inherits.
func (p Plan) setLimits() error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE:     0, // where a core would go is the machine's to say, not the sandbox's
		unix.RLIMIT_MSGQUEUE: 0, // counted by user, which all sandboxes have in common
	}
	if p.Processes > 0 && !p.Grouped {
		limits[unix.RLIMIT_NPROC] = p.Processes
	}
	for what, most := range limits {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// Bare leaves the calling thread without the capabilities that a task's process could
// inherit: all but what a fork into an ipc namespace of its own needs, and that one goes
// with the exec. REQUIRES: a locked thread.
func Bare() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // inheritable and, with it, ambient ones: none
	none[0].Permitted = 1 << unix.CAP_SYS_ADMIN
	none[0].Effective = none[0].Permitted
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
