package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faults are signals that the runtime of a program in Go takes for its own fault, and ends
// by, if a process sends them in a way that does not look like kill: sigqueue, or a file
// with F_SETSIG.
var faults = []unix.Signal{
	unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS, unix.SIGSTKFLT, unix.SIGABRT,
	unix.SIGQUIT, unix.SIGPROF, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGVTALRM, unix.SIGIO,
}

// action is the kernel's struct sigaction.
type action struct {
	handler, flags, restorer, mask uint64
}

// dropFaults gives them back to the kernel, which drops what the first process of a pid
// namespace has no handler for. A fault of its own still ends it.
func dropFaults() error {
	var none action
	for _, sig := range faults {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&none)), 0,
			unsafe.Sizeof(none.mask), 0, 0)
		if errno != 0 {
			return fmt.Errorf("%s: %w", unix.SignalName(sig), errno)
		}
	}
	return nil
}
