package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// TestStackIsBounded: where this machine has groups that limit memory, a stack is in one of its own, its task in
// another, and none is left of them, also if the stack hangs.
func TestStackIsBounded(t *testing.T) {
	o := besideWorld(t, usersHere()...)
	if o == nil {
		return
	}
	task := stranger(1, "site-1", "echo up; sleep 60")
	task.Need.MemMiB = 32
	o.begin(task)
	if got := o.firstLine(task); got != "up" {
		t.Fatalf("%q", got)
	}
	s := o.slotOf(task)
	dir := o.groups.stackGroupOf(s.name)
	if o.groups.mem == "" {
		return // the status says why, as TestMemoryIsHeld looks up
	}
	if got := numbersIn(t, dir, "cgroup.procs"); !slices.Equal(got, []int{s.stack.Pid}) {
		t.Errorf("its group has %v, want %d", got, s.stack.Pid)
	}
	limit := "memory.limit_in_bytes"
	if o.groups.v2 {
		limit = "memory.max"
	}
	if got := numbersIn(t, dir, limit); !slices.Equal(got, []int{stackMiB << 20}) {
		t.Errorf("it is limited to %v", got)
	}
	if err := errors.Join(unix.Kill(s.stack.Pid, unix.SIGSTOP), unix.Kill(s.pid, unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	o.end(task)
	if !eventually(patience, func() bool {
		_, stack := os.Stat(dir)
		_, sandboxes := os.Stat(filepath.Join(o.groups.mem, s.name))
		tries, err := filepath.Glob(filepath.Join(o.groups.mem, "try-*"))
		return errors.Is(stack, os.ErrNotExist) && errors.Is(sandboxes, os.ErrNotExist) && err == nil && len(tries) == 0
	}) {
		t.Error("its group is left, or that of a try")
	}
}

// numbersIn reads a file of a group.
func numbersIn(t *testing.T, dir, name string) (list []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// TestStackGroupOfV2: it is one of the three of its sandbox, has limits by what controllers there are, and is its
// broker's: the sandbox's user cannot change it.
func TestStackGroupOfV2(t *testing.T) {
	for _, has := range []cgroups{{v2: true, cpu: true}, {v2: true}, {cpu: true}} {
		c := has
		c.kill = t.TempDir()
		if c.v2 {
			c.mem = c.kill
		}
		dir := filepath.Join(c.kill, "slot", stackGroup)
		fakeGroup(t, filepath.Join(c.kill, "slot"), "memory cpu")
		fakeGroup(t, dir, "memory cpu")
		for _, name := range []string{"memory.max", "memory.oom.group", "memory.swap.max"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := c.lend("slot", &sandbox.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		l.close()
		b, err := c.stackBirth("slot")
		if err != nil || b.dir != dir || b.born == nil {
			t.Fatalf("%+v: %+v, %v", has, b, err)
		}
		b.close()
		for name, want := range map[string]string{"memory.max": strconv.Itoa(stackMiB << 20), "cpu.max": "100000 100000"} {
			if strings.HasPrefix(name, "memory") && !c.v2 || name == "cpu.max" && !c.cpu {
				want = ""
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%+v: %s is %q, %v", has, name, got, err)
			}
		}
	}
}

// TestSweepKnowsStacks: the group of a stack whose sandbox is alive stays, that of another goes.
func TestSweepKnowsStacks(t *testing.T) {
	c := cgroups{mem: t.TempDir()}
	for _, name := range []string{"alive", "alive" + stackSuffix, "dead", "dead" + stackSuffix} {
		if err := os.Mkdir(filepath.Join(c.mem, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.sweep(func(slot string) bool { return slot == "alive" })
	left, err := filepath.Glob(filepath.Join(c.mem, "*"))
	if err != nil || len(left) != 2 || !strings.HasSuffix(left[1], "alive"+stackSuffix) {
		t.Errorf("left: %v, %v", left, err)
	}
	c.remove("alive")
	if left, err = filepath.Glob(filepath.Join(c.mem, "*")); err != nil || len(left) > 0 {
		t.Error("a sandbox that has gone leaves its stack's group")
	}
}
