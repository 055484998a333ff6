package main

import (
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// brokerSlack is how much later than they ask for a broker's threads may wake, in
	// nanoseconds; the kernel's default is 50 µs. The Go runtime's monitor looks every
	// 20 µs, as long as anything works, whether a system call lasts, and then gives its
	// processor to another thread, which has hardly woken when the call returns. Brokers
	// sync some hundred bytes at a time: that was a third of their processor time. What
	// they do by the clock needs no better than milliseconds.
	brokerSlack = 1_000_000
	// slackSet in the environment says that the process has begun again.
	slackSet = "_CLOUDSHARE_SLACK"
)

// setTimerSlack has a broker run with that slack. Threads inherit it and the monitor
// begins before main, so the process begins again as itself. Where that cannot be
// it goes on as it is.
func setTimerSlack(args []string) {
	if os.Getenv(slackSet) != "" {
		_ = os.Unsetenv(slackSet) // nothing that it starts needs to know
		return
	}
	if len(args) == 0 || args[0] != "broker" {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || before >= brokerSlack {
		return
	}
	self, err := os.Executable()
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, brokerSlack, 0, 0, 0) != nil {
		return
	}
	_ = syscall.Exec(self, os.Args, slices.Concat(os.Environ(), []string{slackSet + "=1"}))
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0)
}
