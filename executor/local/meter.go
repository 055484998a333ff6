package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// meter is what a group had counted when its attempt began: groups serve one after another.
type meter struct {
	user, system time.Duration
	timed        bool
	// peak is open since the kernel counts from 0 for who reads by it (Linux 6.12); nil = it does not.
	peak *os.File
}

// beginUsage begins to count what the attempt uses.
func (g *group) beginUsage() {
	m := &g.meter
	m.close()
	if g.kill != "" {
		m.user, m.system, m.timed = g.cpuStat()
	}
	switch {
	case g.mem == "":
	case g.v2:
		m.peak = reset(filepath.Join(g.mem, "memory.peak"))
	case g.limit > 0: // else its processes are not in the group
		m.peak = reset(filepath.Join(g.mem, "memory.max_usage_in_bytes"))
	}
}

func (m *meter) close() {
	if m.peak != nil {
		m.peak.Close()
	}
	*m = meter{}
}

// reset has the kernel count a highest value from 0.
func reset(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if _, err = f.WriteString("0"); err != nil {
		f.Close()
		return nil
	}
	return f
}

// used returns what the group has counted of the attempt. REQUIRES: no process of it is left.
func (g *group) used() (u watchdog.GroupUsage) {
	m := &g.meter
	defer m.close()
	if user, system, ok := g.cpuStat(); ok && m.timed && user >= m.user && system >= m.system {
		u.User, u.System, u.TimeFrom = user-m.user, system-m.system, executor.UsageCgroup
	}
	if m.peak == nil {
		return u
	}
	text := make([]byte, 32)
	n, err := unix.Pread(int(m.peak.Fd()), text, 0)
	if err != nil {
		return u
	}
	if bytes, err := strconv.ParseInt(strings.TrimSpace(string(text[:n])), 10, 64); err == nil && bytes > 0 {
		u.PeakMemory, u.MemoryFrom = bytes, executor.UsageCgroup
	}
	return u
}

// cpuStat returns the processor time of the group since it was made.
func (g *group) cpuStat() (user, system time.Duration, ok bool) {
	if g.kill == "" {
		return 0, 0, false
	}
	return watchdog.ReadCPUStat(filepath.Join(g.kill, "cpu.stat"))
}
