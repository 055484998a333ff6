package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/executortest"
)

// contained is a handler that runs all tasks in sandboxes, which share one folder.
func contained(t *testing.T) executortest.Env {
	t.Helper()
	folder := executortest.SharedFolder(t)
	env := suite(func(c *Config) { c.Contain, c.Sandbox.Share = ContainAll, []string{folder} })(t)
	env.Shared = folder
	return env
}

// TestConformanceInSandboxes: a task in a sandbox is a task like any other.
func TestConformanceInSandboxes(t *testing.T) { executortest.Run(t, contained) }

// TestHostile: what attacks from a sandbox fails.
func TestHostile(t *testing.T) { executortest.Hostile(t, bounded, nil) }

// bounded is as contained, with bounds of processes and of the disk that a configuration has.
func bounded(t *testing.T) executortest.Env {
	t.Helper()
	folder := executortest.SharedFolder(t)
	env := suite(func(c *Config) {
		c.Contain, c.Sandbox.Share, c.Sandbox.Processes = ContainAll, []string{folder}, 256
		c.Scratch = executortest.HostileScratch
	})(t)
	env.Shared = folder
	return env
}

// TestOneOwnerASandbox: strangers do not come into each other's sandboxes, and an owner's
// next task needs no new one.
func TestOneOwnerASandbox(t *testing.T) {
	cfg := config(t)
	cfg.Contain = ContainForeign
	o, _ := adopted(t, cfg)
	slots := map[string]*slot{}
	for n, owner := range []string{"site-1", "site-3", "site-1", "site-2", "site-3"} {
		task := shell(uint32(n+1), "exit 0")
		task.Owner = owner
		if r := o.run(task); r.ExitCode != 0 || r.Cause != executor.Exited {
			t.Fatalf("task of %s: got %+v", owner, r)
		}
		s := o.slotOf(task)
		if was := slots[owner]; was != nil && was != s {
			t.Errorf("%s has a second sandbox", owner)
		}
		for other, has := range slots {
			if other != owner && has == s {
				t.Errorf("%s and %s share a sandbox", owner, other)
			}
		}
		if want := owner != cfg.Site; s.contained != want {
			t.Errorf("task of %s in a sandbox: %v, want %v", owner, s.contained, want)
		}
		slots[owner] = s
	}
}

// TestRootIsWarned: an operator is told at the start what strangers' commands, and own ones, may do: a broker that is
// root ran them as root without a word.
func TestRootIsWarned(t *testing.T) {
	const strangers, all, own = "as root, with all rights", "as this broker's user", "so are its own users' commands"
	none := errors.New("no namespaces")
	for _, c := range []struct {
		of   containment
		root bool
		want []string
	}{
		{containment{whom: ContainNobody}, true, []string{strangers, own}},
		{containment{whom: ContainNobody}, false, []string{all}},
		{containment{whom: ContainForeign}, true, []string{own}},
		{containment{whom: ContainForeign, why: none}, true, []string{"no namespaces", own}},
		{containment{whom: ContainForeign}, false, nil},
		{containment{whom: ContainAll}, true, nil},
		{containment{whom: ContainAll, why: none}, false, []string{"no namespaces"}},
	} {
		got := c.of.warnings(c.root)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %q, want %q", c, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%+v: got %q, want %q", c, got[i], want)
			}
		}
	}
	log := new(lines)
	cfg := logged(t, log)
	cfg.Contain = ContainNobody
	open(t, cfg)
	if !strings.Contains(log.String(), "sandbox.tasks is off") {
		t.Errorf("nothing is said of it:\n%s", log)
	}
}

// TestNoSandboxNoStrangers: where no sandbox can be made, strangers' commands are refused
// for good, own ones run, and the status says why.
func TestNoSandboxNoStrangers(t *testing.T) {
	cfg := config(t)
	cfg.Contain, cfg.Sandbox.Share = ContainForeign, []string{filepath.Join(t.TempDir(), "missing")}
	o, _ := adopted(t, cfg)
	stranger, own := shell(1, "exit 0"), shell(2, "exit 0")
	own.Owner = cfg.Site
	if err := o.Start(t.Context(), stranger); !errors.Is(err, executor.ErrUnfit) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a stranger's command: got %v, want it unfit with the reason", err)
	}
	if r := o.run(own); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("an own command: got %+v", r)
	}
	if s := o.Status(); !strings.Contains(s, "refused") || !strings.Contains(s, "missing") {
		t.Errorf("status %q does not say what is refused and why", s)
	}
}
