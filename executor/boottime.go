package executor

import "golang.org/x/sys/unix"

// Boottime returns the machine's CLOCK_BOOTTIME in nanoseconds: the clock of
// [Task.Fence]. Unlike Go's monotonic clock it goes on while the machine is
// suspended.
func Boottime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// Linux has had this clock since 2.6.39; without it no fence can be kept.
		panic("executor: CLOCK_BOOTTIME: " + err.Error())
	}
	return ts.Nano()
}
