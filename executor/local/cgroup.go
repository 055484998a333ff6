package local

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups is what this machine lets us do with control groups: two folders in
// which every supervisor makes one group of its own.
type cgroups struct {
	kill string // folder in the v2 hierarchy, "" = trees are walked
	mem  string // folder whose groups limit memory, "" = none does
	v2   bool   // mem is in the v2 hierarchy, the same as kill
	why  string // why mem is "", for people
}

// findCgroups probes by making the folders; dir makes their name unique.
func findCgroups(dir string) cgroups {
	h := fnv.New64a()
	h.Write([]byte(dir))
	name := fmt.Sprintf("cloudshare-%016x", h.Sum64())
	own, err := ownCgroups()
	if err != nil {
		return cgroups{why: err.Error()}
	}
	var c cgroups
	var why []string
	switch {
	case own.v2 == "":
	case !bornInGroups():
		why = append(why, "clone3, which starts a process in its cgroup, is refused here (by RestrictNamespaces of the service?)")
	default:
		why = append(why, c.probeV2(own.v2, name)...)
	}
	if c.mem == "" && own.memory != "" {
		base := filepath.Join(own.memory, name)
		if err := makeGroup(base); err != nil {
			why = append(why, err.Error())
		} else {
			c.mem = base
		}
	}
	if c.mem == "" {
		c.why = cmp.Or(strings.Join(why, "; "), "no cgroup with a memory controller is mounted")
	}
	return c
}

// bornInGroups reports whether a process can be started in a cgroup. A filter of
// system calls that cannot look into clone3 refuses it as if the kernel had none,
// and every task would fail.
func bornInGroups() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	return errno != unix.ENOSYS
}

// probeV2 tries our own group, then its parent: where a service manager put
// the broker into a leaf of its delegated group, limits work only there.
func (c *cgroups) probeV2(own, name string) (why []string) {
	for _, parent := range []string{own, filepath.Dir(own)} {
		base := filepath.Join(parent, name)
		if err := makeGroup(base); err != nil {
			why = append(why, err.Error())
			continue
		}
		if c.kill == "" {
			c.kill = base
		}
		if err := enableMemory(parent, base); err != nil {
			why = append(why, err.Error())
			if c.kill != base {
				_ = os.Remove(base)
			}
			continue
		}
		if c.kill != base {
			_ = os.Remove(c.kill)
		}
		c.kill, c.mem, c.v2 = base, base, true
		return nil
	}
	return why
}

func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

func enableMemory(dirs ...string) error {
	for _, dir := range dirs {
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("read controllers: %w", err)
		}
		if !slices.Contains(strings.Fields(string(have)), "memory") {
			return fmt.Errorf("cgroup %s has no memory controller", dir)
		}
		if err := writeFile(dir, "cgroup.subtree_control", "+memory"); err != nil {
			return fmt.Errorf("delegate memory (run the broker in a leaf of a delegated cgroup): %w", err)
		}
	}
	return nil
}

// ownership is where this process stands in the hierarchies, as folders.
type ownership struct{ v2, memory string }

func ownCgroups() (o ownership, err error) {
	paths := map[string]string{} // controller, "" = v2
	if err = eachLine("/proc/self/cgroup", func(l string) {
		if f := strings.SplitN(l, ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}); err != nil {
		return o, err
	}
	err = eachLine("/proc/self/mounts", func(l string) {
		f := strings.Fields(l)
		if len(f) < 4 {
			return
		}
		if p, ok := paths[""]; ok && f[2] == "cgroup2" && o.v2 == "" {
			o.v2 = existing(f[1], p)
		}
		if p, ok := paths["memory"]; ok && f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), "memory") {
			o.memory = existing(f[1], p)
		}
	})
	return o, err
}

// existing is our group's folder; inside a container the path can name one
// outside the mount, then the mount itself is ours.
func existing(mount, path string) string {
	if dir := filepath.Join(mount, path); isDir(dir) {
		return dir
	}
	return mount
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func eachLine(file string, f func(string)) error {
	b, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	defer b.Close()
	s := bufio.NewScanner(b)
	for s.Scan() {
		f(s.Text())
	}
	return s.Err()
}

func writeFile(dir, name, value string) error {
	// Not os.WriteFile: these files are never made by us.
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// killGroup kills all in a v2 group; "" is no group.
func killGroup(dir string) {
	if dir != "" {
		_ = writeFile(dir, "cgroup.kill", "1")
	}
}

// group is one supervisor's own groups.
type group struct {
	kill   string
	fd     int // of kill, -1 = none
	mem    string
	v2     bool
	joined bool  // v1: the side thread is in mem
	limit  int64 // MiB in force, 0 = none
	ooms   int64 // kills for memory counted before this attempt
	killed bool  // killAll was used since the group was made
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
	unix.Close(g.fd)
	if err := os.Remove(g.kill); err == nil {
		if n := openGroup(g.kill, "", g.v2); n.fd >= 0 {
			g.fd = n.fd
			if g.v2 {
				g.limit = 0 // the new one has none
			}
			return
		}
	}
	// Without it trees are walked.
	g.kill, g.fd = "", -1
}

// openGroup makes the groups; what cannot be made is done without.
func openGroup(kill, mem string, v2 bool) *group {
	g := &group{fd: -1, v2: v2}
	if kill != "" && makeGroup(kill) == nil {
		if fd, err := unix.Open(kill, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			g.kill, g.fd = kill, fd
		}
	}
	if mem != "" && makeGroup(mem) == nil {
		g.mem = mem
	}
	return g
}

// needsThread says that only what the side thread forks can be limited.
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
			return fmt.Errorf("join memory cgroup: %w", err)
		}
		g.joined = true
	}
	if err := g.writeLimit(mib); err != nil {
		return fmt.Errorf("limit memory to %d MiB: %w", mib, err)
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

// oomKilled says that the kernel killed for memory since setLimit.
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
