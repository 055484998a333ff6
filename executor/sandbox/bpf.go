package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Filters of system calls are programs for the kernel's packet filter. They keep a call's number loaded between their
// parts.

// Offsets in the kernel's struct seccomp_data, of arguments their lower halves.
const (
	offCall   = 0
	offArch   = 4
	offFirst  = 16
	offSecond = 24
	offThird  = 32
)

// x32Bit marks calls of amd64's other interface, which has numbers of its own.
const x32Bit = 0x40000000

// ofThisArchitecture begins a filter: what is called by another architecture's numbers gets the answer foreign.
func ofThisArchitecture(foreign unix.SockFilter) []unix.SockFilter {
	return []unix.SockFilter{
		load(offArch),
		equal(auditArch(), 1, 0),
		foreign,
		load(offCall),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32Bit, Jf: 1},
		deny(unix.ENOSYS),
	}
}

// auditArch is the kernel's name of the architecture that this program was built for.
func auditArch() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// equal skips yes or no statements, as what is loaded is k or not.
func equal(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func skipUnless(call uint32) unix.SockFilter { return equal(call, 0, 1) }

// give ends the program with the kernel's answer.
func give(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

var allow = give(unix.SECCOMP_RET_ALLOW)

func deny(errno unix.Errno) unix.SockFilter { return give(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// leases refuses to hold files against their other users: whoever opens or cuts a task's output would wait for it, or
// fail.
var leases = []unix.SockFilter{
	equal(unix.SYS_FCNTL, 0, 5), load(offSecond), equal(unix.F_SETLEASE, 1, 0), equal(setDelegation, 0, 1),
	deny(unix.EPERM), load(offCall),
}

// setDelegation is fcntl's F_SETDELEG, since Linux 6.19.
const setDelegation = 1024 + 16
