package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AloneAttributes are those with which a process is started that works for a sandbox from outside, and calls
// EnterAlone: it has namespaces of its own, but the machine's network.
func (p Plan) AloneAttributes() *syscall.SysProcAttr {
	p.HostNetwork = true
	a := p.Attributes()
	a.AmbientCaps = slices.DeleteFunc(a.AmbientCaps, func(c uintptr) bool {
		return c == unix.CAP_NET_ADMIN || c == unix.CAP_DAC_READ_SEARCH || c == unix.CAP_SYS_PTRACE
	})
	return a
}

// EnterAlone takes from this process all that it does not need, for good: it sees no file of the machine but where the
// machine's name servers are named, no process, and has neither capabilities nor a user of more rights than the
// sandbox's. What it opened before stays open.
// REQUIRES: it was started by AloneAttributes, and nothing else runs in it yet.
func (p Plan) EnterAlone() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("leave the machine: process %d is not the first of a pid namespace", os.Getpid())
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"make a root of its own", p.makeBareRoot},
		{"forbid namespaces inside", forbidNamespaces},
		{"hide processes", func() error { return unix.Unmount("/proc", 0) }},
		{"set limits", p.setLimits},
		{"bound what it writes", boundFiles},
		{"close this process to others", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		{"drop capabilities", dropCapabilities},
		{"refuse system calls", refuseOfAlone},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("leave the machine: %s: %w", step.what, err)
		}
	}
	return nil
}

// makeBareRoot replaces this process's root by one that names the machine's name servers, and becomes the sandbox's
// user. /proc is there for what is still to be done by it.
func (p Plan) makeBareRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	c := &copier{}
	c.nameServers()
	if c.err != nil {
		return c.err
	}
	if err := p.becomeUser(); err != nil {
		return err
	}
	b, err := newBuilder()
	if err != nil {
		return err
	}
	for _, t := range c.trees {
		if err = b.attach(t); err != nil {
			return err
		}
	}
	return errors.Join(b.proc(), b.enter())
}

// nameServers copies where the machine names its name servers. If that is a link to the folder of a service that keeps
// it up to date, all of the folder is copied: such a file is replaced by a rename. One that is just a file is the one
// of now. Without any, programs ask loopback.
func (c *copier) nameServers() {
	file, err := filepath.EvalSymlinks(ResolvConf)
	if err != nil {
		return
	}
	if dir := filepath.Dir(file); slices.Contains(resolver, dir) {
		c.copy(dir, dir, readOnly, true)
		c.trees = append(c.trees, tree{fd: -1, to: ResolvConf, link: file})
		return
	}
	c.copy(file, ResolvConf, readOnly, false)
}

// mostWritten is how long a file may be that a process of EnterAlone writes to: it has its log.
const mostWritten = 64 << 20

func boundFiles() error {
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: mostWritten, Max: mostWritten})
}

// refuseOfAlone refuses what sandboxes are refused, to start programs, to look into others, and sockets that lead to
// the machine's services by a name without a file (AF_UNIX): those are its network's.
func refuseOfAlone() error {
	return install(filter([]uint32{unix.AF_INET, unix.AF_INET6},
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
}

// dropCapabilities leaves all threads of this process without any, and those to come.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)),
		uintptr(unsafe.Pointer(&none[0])), 0)
	if errno == unix.ENOTSUP { // a program with C in it, as those with the race detector are: this thread's alone
		return unix.Capset(&header, &none[0])
	}
	if errno != 0 {
		return errno
	}
	return nil
}
