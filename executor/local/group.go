package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// group is one supervisor's own groups.
type group struct {
	kill   string // in force, "" = none
	fd     int    // of kill, -1 = none
	mem    string // in force, "" = none
	v2     bool
	cpu    bool  // kill limits processor time
	joined bool  // v1: the side thread is in mem
	limit  int64 // MiB in force, 0 = none
	milli  int64 // milli-cores in force, 0 = no limit
	pids   int64 // processes that kill is to bound, 0 = it does not
	io     ioMax
	ooms   int64 // kills for memory counted before this attempt
	killed bool  // killAll was used since the group was made
	meter  meter // of the attempt
	// wanted are the groups that this machine has for a supervisor.
	wanted struct{ kill, mem string }
}

// newGroup makes the groups; what cannot be made is tried again by ready. At most pids processes are in them, if not
// 0, and io bounds disks.
func newGroup(kill, mem string, v2, cpu bool, pids int64, io ioMax) *group {
	g := &group{fd: -1, v2: v2, cpu: cpu && kill != "", pids: pids, io: io}
	g.wanted.kill, g.wanted.mem = kill, mem
	_ = g.ready()
	return g
}

// ready makes the groups that are not there. An attempt does without the one by which
// it is killed (trees are walked then), but not without one that holds it to what it
// asked for.
func (g *group) ready() error {
	if g.fd < 0 && g.wanted.kill != "" {
		if err := g.open(g.wanted.kill); err != nil && g.holds() {
			return err
		}
	}
	if g.io.freed {
		if err := g.boundIO(g.kill); err != nil {
			return err
		}
	}
	if g.mem == "" && g.wanted.mem != "" {
		if err := g.make(g.wanted.mem); err != nil {
			return err
		}
		g.mem = g.wanted.mem
	}
	return nil
}

// holds reports whether the group by which attempts are killed limits anything.
func (g *group) holds() bool {
	return g.cpu || g.pids > 0 || len(g.io.disks) > 0 || g.v2 && g.wanted.mem != ""
}

// open makes the group by which attempts are killed. It has no limits yet but that of processes.
func (g *group) open(dir string) error {
	if err := g.make(dir); err != nil {
		return err
	}
	if g.pids > 0 {
		if err := writeFile(dir, "pids.max", strconv.FormatInt(g.pids, 10)); err != nil {
			return fmt.Errorf("limit processes to %d: %w", g.pids, err)
		}
	}
	if err := g.boundIO(dir); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open cgroup %s: %w", dir, err)
	}
	g.kill, g.fd, g.milli = dir, fd, 0
	if g.v2 {
		g.limit = 0
	}
	return nil
}

// make makes one of the groups, and the site's above it if others have removed that.
func (g *group) make(dir string) error {
	err := makeGroup(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if err = makeGroup(above); err != nil {
		return err
	}
	if g.v2 && dir == g.wanted.mem {
		err = enable("memory", above)
	}
	if g.cpu {
		err = errors.Join(err, enable("cpu", above))
	}
	return errors.Join(err, makeGroup(dir))
}

// isGone reports whether others have removed the group by which attempts are killed. A
// fork into it says that there is no such file, as one of a missing command does.
func (g *group) isGone() bool {
	return g.fd >= 0 && unix.Faccessat(g.fd, "cgroup.procs", unix.F_OK, 0) != nil
}

// lost lets go of the group by which attempts are killed: it takes no process any more.
func (g *group) lost() {
	g.meter.close()
	unix.Close(g.fd)
	_ = os.Remove(g.kill) // if it is still there
	g.kill, g.fd = "", -1
}

// killAll kills all in the group.
func (g *group) killAll() {
	if g.kill != "" {
		killGroup(g.kill)
		g.killed = true
	}
}

// renew replaces a group that was killed: Linux 6.18 goes on killing whatever
// is cloned into it (it compares the kill count of the wrong group).
// REQUIRES: no process is left in it.
func (g *group) renew() {
	if !g.killed {
		return
	}
	g.killed = false
	g.lost()
	_ = g.ready() // else the next attempt says why not, or does without
}

// cpuPeriod is that of cpu.max, in microseconds; minQuota is the least time of it that
// the kernel takes.
const (
	cpuPeriod = 100_000
	minQuota  = 1_000
)

// setCores bounds the processor time of what is born in the group from now on.
func (g *group) setCores(milli int64) error {
	milli = max(milli, 1)
	if !g.cpu || milli == g.milli {
		return nil
	}
	quota := max(milli*cpuPeriod/1000, minQuota)
	if err := writeFile(g.kill, "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod)); err != nil {
		return fmt.Errorf("limit processor time to %d milli-cores: %w", milli, err)
	}
	g.milli = milli
	return nil
}

// needsThread reports whether only what the side thread forks can be limited.
func (g *group) needsThread(mib int64) bool { return g.mem != "" && !g.v2 && mib > 0 }

// setLimit bounds the memory of what this thread forks from now on.
// REQUIRES: on the side thread, if needsThread.
func (g *group) setLimit(mib int64) error {
	if g.mem == "" || (mib == 0 && g.limit == 0) {
		return nil
	}
	if !g.v2 && !g.joined {
		// v1 counts threads one by one, and a fork inherits its thread's group:
		// only the side thread joins, the supervisor itself stays outside.
		if err := writeFile(g.mem, "tasks", strconv.Itoa(unix.Gettid())); err != nil {
			g.mem = "" // made again for the next attempt
			return fmt.Errorf("join memory cgroup: %w", err)
		}
		g.joined = true
	}
	if mib != g.limit {
		if err := g.writeLimit(mib); err != nil {
			return fmt.Errorf("limit memory to %d MiB: %w", mib, err)
		}
	}
	g.limit, g.ooms = mib, g.countOOM()
	return nil
}

func (g *group) writeLimit(mib int64) error {
	if g.v2 {
		_ = writeFile(g.mem, "memory.oom.group", "1")
		_ = writeFile(g.mem, "memory.swap.max", "0")
		if mib == 0 {
			return writeFile(g.mem, "memory.max", "max")
		}
		return writeFile(g.mem, "memory.max", strconv.FormatInt(mib<<20, 10))
	}
	// v1: memory with swap can never be below memory, so lift it first.
	_ = writeFile(g.mem, "memory.memsw.limit_in_bytes", "-1")
	_ = writeFile(g.mem, "memory.force_empty", "0")
	if mib == 0 {
		return writeFile(g.mem, "memory.limit_in_bytes", "-1")
	}
	bytes := strconv.FormatInt(mib<<20, 10)
	if err := writeFile(g.mem, "memory.limit_in_bytes", bytes); err != nil {
		return err
	}
	_ = writeFile(g.mem, "memory.memsw.limit_in_bytes", bytes)
	return nil
}

// oomKilled reports whether the kernel killed for memory since setLimit.
func (g *group) oomKilled() bool {
	return g.mem != "" && g.limit != 0 && g.countOOM() > g.ooms
}

func (g *group) countOOM() (n int64) {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	_ = eachLine(filepath.Join(g.mem, file), func(l string) {
		if v, ok := strings.CutPrefix(l, "oom_kill "); ok {
			n, _ = strconv.ParseInt(v, 10, 64)
		}
	})
	return n
}

// close removes the groups; they go only when empty.
// REQUIRES: on the side thread, if it joined.
func (g *group) close() {
	if g.joined {
		_ = writeFile(filepath.Dir(filepath.Dir(g.mem)), "tasks", strconv.Itoa(unix.Gettid()))
	}
	if g.fd >= 0 {
		unix.Close(g.fd)
	}
	for _, dir := range []string{g.kill, g.mem} {
		if dir != "" {
			_ = os.Remove(dir)
		}
	}
}
