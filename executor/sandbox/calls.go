package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are system calls that no task needs and through which much of the kernel is
// reached: kernel memory, keys, mounts, namespaces, loading of code. They fail with EPERM.
var refused = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY, // keyrings are a user's, and outlive a task
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_CHROOT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_FANOTIFY_INIT,
}

// absent fail as if the kernel had none: programs do without them.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// families are those of sockets that a network namespace or a file's rights contain. Others
// reach beyond: AF_VSOCK the hypervisor, AF_ALG much of the kernel.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// filter returns the program that the kernel asks about each call of this architecture, and that refuses all families
// of sockets but some, and more calls; those of another architecture end the process.
func filter(families []uint32, more ...uint32) []unix.SockFilter {
	p := ofThisArchitecture(give(unix.SECCOMP_RET_KILL_PROCESS))
	for _, call := range slices.Concat(refused, more) {
		p = append(p, skipUnless(call), deny(unix.EPERM))
	}
	for _, call := range absent {
		p = append(p, skipUnless(call), deny(unix.ENOSYS))
	}
	return slices.Concat(p, limitsOfOthers(), leases, sockets(families), []unix.SockFilter{allow})
}

// limitsOfOthers refuses to set the limits of another process: the kernel asks for the same
// user only, which the first process of the sandbox is, too. The upper half of a pointer
// to the new limits is looked at as well, so that none passes for no limits.
func limitsOfOthers() []unix.SockFilter {
	return []unix.SockFilter{
		equal(unix.SYS_PRLIMIT64, 0, 8),
		load(offFirst),
		equal(0, 5, 0), // its own
		load(offThird),
		equal(0, 0, 2),
		load(offThird + 4),
		equal(0, 1, 0), // reads them only
		deny(unix.EPERM),
		load(offCall),
	}
}

// sockets refuses families of sockets but some.
func sockets(families []uint32) []unix.SockFilter {
	p := []unix.SockFilter{
		equal(unix.SYS_SOCKET, 1, 0),
		equal(unix.SYS_SOCKETPAIR, 0, uint8(2*len(families)+2)),
		load(offFirst),
	}
	for _, family := range families {
		p = append(p, equal(family, 0, 1), allow)
	}
	return append(p, deny(unix.EAFNOSUPPORT))
}

// RefuseCalls installs the filter on all threads of this process, for good; nothing that
// they start gains a right by an exec.
func RefuseCalls() error { return install(filter(families)) }

func install(p []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The filter's spreading to the other threads takes this along.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return errno
	}
	if thread != 0 { // one that could not be given the filter
		return fmt.Errorf("thread %d has another filter", thread)
	}
	return nil
}
