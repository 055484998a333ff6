package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Guard protects the first process of a container from the task that it will start, which
// is the same user and, unlike in a sandbox, has no fewer capabilities: it sets neither its
// limits nor when it runs, and ends it by no signal. It closes what engines of some
// versions leave open, too. It counts for all that this process starts; what another
// architecture calls is left to the engine's filter.
// REQUIRES: this process has all threads that it needs.
func Guard() error {
	last, err := lastThread()
	if err != nil {
		return err
	}
	if err = dropFaults(); err != nil {
		return fmt.Errorf("drop signals from inside: %w", err)
	}
	if err = install(guard(last)); err != nil {
		return fmt.Errorf("refuse system calls: %w", err)
	}
	return nil
}

// lastThread returns the highest number of this process's threads. Tasks, which are
// started later, have higher ones.
func lastThread() (last uint32, err error) {
	list, err := os.ReadDir("/proc/self/task")
	for _, e := range list {
		if tid, no := strconv.ParseUint(e.Name(), 10, 31); no == nil {
			last = max(last, uint32(tid))
		}
	}
	return last, err
}

// guard returns the filter of a container whose first process has threads up to last.
func guard(last uint32) []unix.SockFilter {
	load, give := loadWord, giveBack
	deny := func(errno unix.Errno) unix.SockFilter { return give(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	allow := give(unix.SECCOMP_RET_ALLOW)
	p := []unix.SockFilter{
		load(offArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch(), Jt: 1},
		allow,
		load(offCall),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32Bit, Jf: 1},
		deny(unix.ENOSYS),
	}
	for _, call := range []uint32{unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY} {
		p = append(p, skipUnless(call), deny(unix.EPERM))
	}
	for _, call := range append([]uint32{unix.SYS_CLONE3}, absent...) { // libraries take clone then
		p = append(p, skipUnless(call), deny(unix.ENOSYS))
	}
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 4}, load(offFirst),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
			deny(unix.EPERM), load(offCall))
	}
	p = slices.Concat(p, scheduling(last, load, deny), limitsOfOthers(load, deny), vsock(load, deny))
	return append(p, allow)
}

// scheduling refuses to change when threads up to last run: one that is idle looks at no
// fence while others are busy. 0 is the caller itself.
func scheduling(
	last uint32, load func(uint32) unix.SockFilter, deny func(unix.Errno) unix.SockFilter,
) (p []unix.SockFilter) {
	for _, call := range []uint32{
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
	} {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 5}, load(offFirst),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 2},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: last, Jt: 1},
			deny(unix.EPERM), load(offCall))
	}
	const ioprioUser = 3
	for call, user := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: ioprioUser} {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 7}, load(offFirst),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: user, Jt: 3}, load(offSecond),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 2},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: last, Jt: 1},
			deny(unix.EPERM), load(offCall))
	}
	return p
}

// vsock refuses the sockets that lead to the hypervisor.
func vsock(load func(uint32) unix.SockFilter, deny func(unix.Errno) unix.SockFilter) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		load(offFirst),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_VSOCK, Jf: 1},
		deny(unix.EAFNOSUPPORT),
	}
}

func loadWord(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func giveBack(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

func skipUnless(call uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}
}
