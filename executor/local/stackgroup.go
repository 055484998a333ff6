package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Groups of stacks: on v2 below their sandbox's, beside that of its task, on v1 beside its task's.
const (
	stackGroup  = "network"
	stackSuffix = ".network"
)

// What a stack may have. Its own bounds and those of what the kernel holds of its connections add up to less memory, so
// only a fault of it comes to that, and it is killed alone. A core is all that its runtime uses.
const (
	stackMiB   = 768
	stackMilli = 1000
)

// stackGroupOf returns the folder of a group of a slot's stack, "" = this machine has none to give.
func (c *cgroups) stackGroupOf(slot string) string {
	switch {
	case c.lendsV2():
		return filepath.Join(c.kill, slot, stackGroup)
	case c.mem != "":
		return filepath.Join(c.mem, slot+stackSuffix)
	}
	return ""
}

// makeStackGroup makes it, with its limits. REQUIRES: the sandbox's was made.
func (c *cgroups) makeStackGroup(slot string) (dir string, err error) {
	if dir = c.stackGroupOf(slot); dir == "" {
		return "", nil
	}
	if err = makeGroup(dir); err != nil {
		return "", err
	}
	g := &group{kill: dir, mem: dir, v2: c.v2, cpu: c.cpu && c.lendsV2()}
	if c.mem != "" {
		if err = g.writeLimit(stackMiB); err != nil {
			return "", fmt.Errorf("limit the memory of a network: %w", err)
		}
	}
	return dir, g.setCores(stackMilli)
}

// stackBirth starts a stack in its group.
type stackBirth struct {
	dir  string   // "" = it has none
	born *os.File // on v2; a process of v1 is put there
}

// stackBirth makes the group of a slot's stack.
func (c *cgroups) stackBirth(slot string) (b stackBirth, err error) {
	if b.dir, err = c.makeStackGroup(slot); err == nil && b.dir != "" && c.lendsV2() {
		b.born, err = openGroup(b.dir)
	}
	return b, err
}

// tryStackBirth makes one for a sandbox that is only tried.
func (c *cgroups) tryStackBirth(name string, p *sandbox.Plan) (stackBirth, error) {
	l, err := c.lend(name, p)
	if err != nil {
		return stackBirth{}, err
	}
	l.close()
	return c.stackBirth(name)
}

// prepare has a process start there.
func (b *stackBirth) prepare(a *syscall.SysProcAttr) {
	if b.born != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(b.born.Fd())
	}
}

// begun puts one there that has started. What it has taken of memory before stays its broker's.
func (b *stackBirth) begun(pid int) error {
	if b.dir == "" || b.born != nil {
		return nil
	}
	err := writeFile(b.dir, "cgroup.procs", strconv.Itoa(pid))
	if err != nil && !errors.Is(err, unix.ESRCH) { // one that has ended is missed elsewhere
		return fmt.Errorf("join memory cgroup: %w", err)
	}
	return nil
}

func (b *stackBirth) close() { b.born.Close() }

// slotOfGroup returns the slot of a group by its name.
func slotOfGroup(name string) string { return strings.TrimSuffix(name, stackSuffix) }
