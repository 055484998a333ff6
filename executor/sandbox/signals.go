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
func dropFaults() error { return drop(faults) }

// calls end a program that does not expect them.
var calls = []unix.Signal{
	unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGPWR,
}

// DropSignals has the kernel drop every signal that others send to this process, the first one of a pid namespace,
// and that would end it or that its runtime would take for a fault. It must not ask for any of them later.
func DropSignals() error {
	all := append(append([]unix.Signal{}, faults...), calls...)
	const first, last = 35, 64 // of real time; libraries of C take those before
	for sig := unix.Signal(first); sig <= last; sig++ {
		all = append(all, sig)
	}
	return drop(all)
}

// drop gives signals back to the kernel.
func drop(signals []unix.Signal) error {
	var none action
	for _, sig := range signals {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&none)), 0,
			unsafe.Sizeof(none.mask), 0, 0)
		if errno != 0 {
			return fmt.Errorf("%s: %w", unix.SignalName(sig), errno)
		}
	}
	return nil
}
