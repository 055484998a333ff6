package local

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// meter is what a group had counted when its last attempt had ended: groups serve one after another, and nothing is
// looked at before a start, which it would delay.
type meter struct {
	user, system time.Duration
	// peak counts from 0 for who reads by it, since it was written to (Linux 6.12); nil = the kernel does not, or it
	// was not needed yet.
	peak *os.File
	none bool // peak cannot be had
}

// beginUsage begins to count what the attempt uses; it does something for a group's first one only.
func (g *group) beginUsage() {
	m := &g.meter
	if m.peak != nil || m.none || g.mem == "" || !g.v2 && g.limit == 0 {
		return
	}
	file := "memory.max_usage_in_bytes"
	if g.v2 {
		file = "memory.peak"
	}
	m.peak = reset(filepath.Join(g.mem, file))
	m.none = m.peak == nil
}

// close has it begin again with the next group.
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
	if user, system, ok := g.cpuStat(); ok {
		if user >= m.user && system >= m.system {
			u.User, u.System, u.TimeFrom = user-m.user, system-m.system, executor.UsageCgroup
		}
		m.user, m.system = user, system
	}
	if m.peak == nil || !g.v2 && g.limit == 0 { // v1: its processes are not in the group
		return u
	}
	text := make([]byte, 32)
	n, err := unix.Pread(int(m.peak.Fd()), text, 0)
	if err == nil {
		u.SetPeak(text[:n])
		_, err = m.peak.WriteAt([]byte("0"), 0)
	}
	if err != nil {
		m.peak.Close()
		m.peak, m.none = nil, true
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
