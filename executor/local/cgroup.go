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
	// cpu: groups in kill limit processor time (cpu.max); whyCPU says why not.
	cpu    bool
	whyCPU string
	pids   bool // groups in kill can bound the processes in them (pids.max)
	io     bandwidth
}

// findCgroups probes by making the folders; dir makes their name unique.
func findCgroups(dir string) cgroups {
	h := fnv.New64a()
	h.Write([]byte(dir))
	name := fmt.Sprintf("cloudshare-%016x", h.Sum64())
	own, err := ownCgroups()
	if err != nil {
		return cgroups{why: err.Error(), whyCPU: err.Error(), io: bandwidth{why: err.Error()}}
	}
	c := cgroups{whyCPU: "no cgroup v2 is mounted"}
	c.io.why = c.whyCPU
	var why []string
	switch {
	case own.v2 == "":
	case !bornInGroups():
		c.whyCPU = "clone3, which starts a process in its cgroup, is refused here (by RestrictNamespaces of the service?)"
		c.io.why = c.whyCPU
		why = append(why, c.whyCPU)
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
// the broker into a leaf of its delegated group, limits work only there. It returns
// why memory cannot be limited.
func (c *cgroups) probeV2(own, name string) (why []string) {
	var whyCPU []string
	for _, parent := range []string{own, filepath.Dir(own)} {
		base := filepath.Join(parent, name)
		if err := makeGroup(base); err != nil {
			why, whyCPU, c.io.why = append(why, err.Error()), append(whyCPU, err.Error()), err.Error()
			continue
		}
		first := c.kill
		c.kill = cmp.Or(first, base)
		noMemory, noCPU := enable("memory", parent, base), enable("cpu", parent, base)
		c.pids = enable("pids", parent, base) == nil
		c.io.probe(parent, base, noMemory)
		if noMemory != nil {
			why = append(why, noMemory.Error())
		}
		if noCPU != nil {
			whyCPU = append(whyCPU, noCPU.Error())
		}
		if noMemory == nil || noCPU == nil || c.pids {
			c.moveTo(base)
			if c.cpu = noCPU == nil; noMemory == nil {
				c.mem, c.v2, why = base, true, nil
			}
			break
		}
		if c.kill != base {
			_ = os.Remove(base)
		}
	}
	c.whyCPU = strings.Join(whyCPU, "; ")
	return why
}

// moveTo has groups made in base.
func (c *cgroups) moveTo(base string) {
	if c.kill != base {
		_ = os.Remove(c.kill)
	}
	c.kill = base
}

// bases returns the folders in which supervisors have their groups.
func (c *cgroups) bases() (list []string) {
	for _, base := range []string{c.kill, c.mem} {
		if base != "" {
			list = append(list, base)
		}
	}
	return list
}

// sweep empties and removes the groups of supervisors that are no more.
func (c *cgroups) sweep(isAlive func(slot string) bool) {
	for _, base := range c.bases() {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && !isAlive(slotOfGroup(e.Name())) {
				killGroup(filepath.Join(base, e.Name()))
				removeGroup(filepath.Join(base, e.Name()))
			}
		}
	}
}

// killIn kills what runs in a slot's group, if trees need not be walked.
func (c *cgroups) killIn(slot string) {
	if c.kill != "" {
		killGroup(filepath.Join(c.kill, slot))
	}
}

// remove removes a dead supervisor's groups.
func (c *cgroups) remove(slot string) {
	for _, base := range c.bases() {
		removeGroup(filepath.Join(base, slot))
		_ = os.Remove(filepath.Join(base, slot+stackSuffix))
	}
}

// removeGroup removes a supervisor's group with those of a sandbox below it, if all are empty.
func removeGroup(dir string) {
	for _, below := range []string{taskGroup, ownGroup, stackGroup, ""} {
		_ = os.Remove(filepath.Join(dir, below))
	}
}

// close removes the folders; they stay while supervisors have groups in them.
func (c *cgroups) close() {
	for _, base := range c.bases() {
		_ = os.Remove(base)
	}
}

// arguments tell a supervisor which groups it has.
func (c *cgroups) arguments(slot string) (args []string) {
	if c.kill != "" {
		args = append(args, "-kill", filepath.Join(c.kill, slot), "-cpu="+strconv.FormatBool(c.cpu))
	}
	if c.mem != "" {
		args = append(args, "-memory", filepath.Join(c.mem, slot), "-v2="+strconv.FormatBool(c.v2))
	}
	return args
}

func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// enable hands a controller down from each of the groups.
func enable(controller string, dirs ...string) error {
	for _, dir := range dirs {
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("read controllers: %w", err)
		}
		if !slices.Contains(strings.Fields(string(have)), controller) {
			return fmt.Errorf("cgroup %s has no %s controller", dir, controller)
		}
		if err := writeFile(dir, "cgroup.subtree_control", "+"+controller); err != nil {
			return fmt.Errorf("delegate %s (run the broker in a leaf of a delegated cgroup): %w", controller, err)
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

// existing returns our group's folder; inside a container the path can name one
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
