package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Guard protects the first process of a container from the task that it will start, which
// is the same user and, unlike in a sandbox, has no fewer capabilities: it sets neither its
// limits nor when it runs, and ends it by no signal. It closes what engines of some
// versions leave open, too. It counts for all that this process starts; what another
// architecture calls is left to the engine's filter. First this process is given threads,
// as many as it needs: what they are is known then.
func Guard(threads int) error {
	watchdog.MakeThreads(threads)
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
	p := ofThisArchitecture(allow)
	for _, call := range []uint32{unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY} {
		p = append(p, skipUnless(call), deny(unix.EPERM))
	}
	for _, call := range append([]uint32{unix.SYS_CLONE3}, absent...) { // libraries take clone then
		p = append(p, skipUnless(call), deny(unix.ENOSYS))
	}
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		p = append(p, equal(call, 0, 4), load(offFirst),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
			deny(unix.EPERM), load(offCall))
	}
	return slices.Concat(p, scheduling(last), limitsOfOthers(), leases, vsock, []unix.SockFilter{allow})
}

// scheduling refuses to change when threads up to last run: one that is idle looks at no
// fence while others are busy. 0 is the caller itself.
func scheduling(last uint32) (p []unix.SockFilter) {
	later := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: last, Jt: 1}
	for _, call := range []uint32{
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
	} {
		p = append(p, equal(call, 0, 5), load(offFirst),
			equal(0, 2, 0), later, deny(unix.EPERM), load(offCall))
	}
	const ioprioUser = 3
	for call, user := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: ioprioUser} {
		p = append(p, equal(call, 0, 7), load(offFirst),
			equal(user, 3, 0), load(offSecond),
			equal(0, 2, 0), later, deny(unix.EPERM), load(offCall))
	}
	return p
}

// vsock refuses the sockets that lead to the hypervisor.
var vsock = []unix.SockFilter{
	equal(unix.SYS_SOCKET, 0, 3), load(offFirst), equal(unix.AF_VSOCK, 0, 1), deny(unix.EAFNOSUPPORT),
}
