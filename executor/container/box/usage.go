package box

import (
	"os"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// groupUsage returns what this container's own cgroup has counted, if it can be seen here:
// with this process, which is small.
func groupUsage() (u watchdog.GroupUsage) {
	for _, path := range []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && bytes > 0 {
			u.PeakMemory, u.MemoryFrom = bytes, executor.UsageCgroup
			break
		}
	}
	if user, system, ok := watchdog.ReadCPUStat("/sys/fs/cgroup/cpu.stat"); ok {
		u.User, u.System, u.TimeFrom = user, system, executor.UsageCgroup
	}
	return u
}
