package box

import (
	"os"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// groupUsage returns what this container's own cgroup has counted, if it can be seen here:
// with this process, which is small.
func groupUsage() (u watchdog.GroupUsage) {
	for _, path := range []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"} {
		if b, err := os.ReadFile(path); err == nil && u.MemoryFrom == executor.UsageUnknown {
			u.SetPeak(b)
		}
	}
	if user, system, ok := watchdog.ReadCPUStat("/sys/fs/cgroup/cpu.stat"); ok {
		u.User, u.System, u.TimeFrom = user, system, executor.UsageCgroup
	}
	return u
}
