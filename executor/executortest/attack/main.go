// Command attack is a hostile task of package executortest, which is run at step 6 of a job's way by tests alone: it
// tries what a shell cannot, by the names in its arguments, and prints those that worked. It is static, for images with
// nothing in them: it never imports more than the standard library and x/sys.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var attacks = map[string]func() error{
	"renice": func() error {
		return eachThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, 19) })
	},
	"reniceall": func() error {
		return firstOf(unix.Setpriority(unix.PRIO_PGRP, 1, 19), unix.Setpriority(unix.PRIO_USER, 0, 19))
	},
	"idle":      func() error { return eachThread(beIdle) },
	"attribute": func() error { return eachThread(attribute) },
	"pin":       func() error { return eachThread(pin) },
	"ionice": func() error {
		return eachThread(func(tid int) error { return call(unix.SYS_IOPRIO_SET, 1, uintptr(tid), 3<<13) })
	},
	"limit": func() error { return eachThread(limit) },
	"trace": func() error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0) },
	"read":  readFirst,
	"file":  takeFile,

	"key": func() error { return callText(unix.SYS_ADD_KEY, "user", "x", 1, unix.KEY_SPEC_USER_KEYRING) },
	"keyring": func() error {
		return call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, keyring(unix.KEY_SPEC_USER_KEYRING), 1)
	},
	"uring":     ring,
	"lease":     lease,
	"bpf":       func() error { return withBuffer(unix.SYS_BPF, 0, 32) },
	"perf":      perf,
	"fault":     func() error { return call(unix.SYS_USERFAULTFD, 0) },
	"mount":     func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"unshare":   func() error { return unix.Unshare(unix.CLONE_NEWNS) },
	"userspace": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"clone":     cloneUser,
	"chroot":    func() error { return unix.Chroot("/tmp") },
	"module":    func() error { return withBuffer(unix.SYS_INIT_MODULE, 0, 0) },
	"log":       func() error { return call(unix.SYS_SYSLOG, 2, 0, 0) },
	"clock":     func() error { return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: 1}) },
	"device":    device,

	"vsock":  func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"alg":    func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"packet": func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0x300) },
	"raw":    func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },

	"cgroup": leaveCgroup,
	"engine": engine,
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(out io.Writer, names []string) error {
	for _, name := range names {
		attack := attacks[name]
		if attack == nil {
			return fmt.Errorf("no such attack: %s", name)
		}
		if attack() == nil {
			fmt.Fprintln(out, name)
		}
	}
	_, err := fmt.Fprintln(out, "end")
	return err
}

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// withBuffer calls with a first argument and zeroed memory.
func withBuffer(number, first, size uintptr) error {
	var zero [128]byte
	return call(number, first, uintptr(unsafe.Pointer(&zero[0])), size) // the memory is this function's own
}

func callText(number uintptr, kind, name string, size uintptr, ring int) error {
	k, n := append([]byte(kind), 0), append([]byte(name), 0)
	text := uintptr(unsafe.Pointer(&n[0])) // the payload as well
	return call(number, uintptr(unsafe.Pointer(&k[0])), text, text, size, keyring(ring))
}

func keyring(special int) uintptr { return uintptr(special) }

// firstOf returns nil if one of them is.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errs[0]
}

// eachThread tries the threads of the process that watches this one.
func eachThread(do func(tid int) error) error {
	list, _ := os.ReadDir("/proc/1/task")
	errs := []error{do(1)}
	for _, e := range list {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			errs = append(errs, do(tid))
		}
	}
	return firstOf(errs...)
}

func beIdle(tid int) error {
	var parameter int32
	return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), 5, uintptr(unsafe.Pointer(&parameter)))
}

func attribute(tid int) error { return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: 48, Policy: 5}, 0) }

func pin(tid int) error {
	var set unix.CPUSet
	set.Set(0)
	return unix.SchedSetaffinity(tid, &set)
}

func limit(tid int) error {
	return unix.Prlimit(tid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}, nil)
}

func readFirst() error {
	buf := make([]byte, 8)
	at := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &buf[0], Len: 8}}, at, 0)
	return err
}

func takeFile() error {
	fd, err := unix.PidfdOpen(1, 0)
	if err == nil {
		_, err = unix.PidfdGetfd(fd, 0, 0)
	}
	return err
}

func ring() error { return withBuffer(unix.SYS_IO_URING_SETUP, 4, 0) }

// lease holds its own output against who reads or cuts it.
func lease() error {
	_, err := unix.FcntlInt(1, unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

func perf() error {
	_, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: 128}, 1, -1, -1, 0)
	return err
}

// cloneUser makes a process in a user namespace of its own by clone3, whose flags no
// filter of calls can see.
func cloneUser() error {
	p, err := os.StartProcess(os.Args[0], []string{os.Args[0]}, &os.ProcAttr{Sys: &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER,
	}})
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

func device() error {
	if err := unix.Mknod("memory", unix.S_IFCHR|0o600, 1<<8|1); err != nil {
		return err
	}
	f, err := os.Open("memory")
	if err == nil {
		f.Close()
	}
	return err
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// leaveCgroup looks for a cgroup that it can move to.
func leaveCgroup() error {
	found := errors.New("none")
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "cgroup.procs" && os.WriteFile(path, []byte("0"), 0) == nil {
			found = nil
		}
		return nil
	})
	return found
}

// engine asks whoever listens on an engine's socket, where engines have it.
func engine() error {
	errs := []error{errors.New("none")}
	for _, path := range []string{
		"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/systemd/private", "/run/dbus/system_bus_socket",
	} {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		errs = append(errs, err)
	}
	return firstOf(errs...)
}
