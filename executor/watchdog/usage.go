package watchdog

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// GroupUsage is what a cgroup has counted of an attempt.
type GroupUsage executor.Usage

// SetPeak takes the highest memory from what a cgroup's file of it holds; what is no number says nothing.
func (g *GroupUsage) SetPeak(text []byte) {
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err == nil && bytes > 0 {
		g.PeakMemory, g.MemoryFrom = bytes, executor.UsageCgroup
	}
}

// ContainerUsage returns what the cgroup of this process's container has counted, if it can be seen in there: with this
// process, which is small.
func ContainerUsage() (g GroupUsage) {
	for _, path := range []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"} {
		if b, err := os.ReadFile(path); err == nil && g.MemoryFrom == executor.UsageUnknown {
			g.SetPeak(b)
		}
	}
	if user, system, ok := ReadCPUStat("/sys/fs/cgroup/cpu.stat"); ok {
		g.User, g.System, g.TimeFrom = user, system, executor.UsageCgroup
	}
	return g
}

// or returns it with what it does not know from reaped.
func (g GroupUsage) or(reaped executor.Usage) executor.Usage {
	u := reaped
	if g.MemoryFrom != executor.UsageUnknown {
		u.PeakMemory, u.MemoryFrom = g.PeakMemory, g.MemoryFrom
	}
	if g.TimeFrom != executor.UsageUnknown {
		u.User, u.System, u.TimeFrom = g.User, g.System, g.TimeFrom
	}
	return u
}

// ReadCPUStat returns the processor time that a file cpu.stat of cgroup v2 tells.
func ReadCPUStat(path string) (user, system time.Duration, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	found := 0
	for l := range strings.Lines(string(b)) {
		name, text, _ := strings.Cut(strings.TrimSpace(l), " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "user_usec":
			user, found = time.Duration(n)*time.Microsecond, found+1
		case "system_usec":
			system, found = time.Duration(n)*time.Microsecond, found+1
		}
	}
	return user, system, found == 2
}
