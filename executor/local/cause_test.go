package local

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// alone is a script that waits until its network has gone.
const alone = "echo up; while [ $(wc -l </proc/net/route) -gt 1 ]; do :; done; "

// TestOwnFaultWithoutNetwork: a task that has gone over its scratch, or was killed for memory, has failed by that, also
// if its stack died as well.
func TestOwnFaultWithoutNetwork(t *testing.T) {
	o := besideWorldWith(t, func(c *Config) { c.Scratch, c.Grace = 1<<20, patience }, usersHere()...)
	if o == nil {
		return
	}
	over := stranger(1, "site-1", "trap '' TERM; "+alone+"head -c 8000000 /dev/zero >file; while :; do sleep 0.1; done")
	o.begin(over)
	if got := o.firstLine(over); got != "up" {
		t.Fatalf("%q", got)
	}
	if err := o.slotOf(over).stack.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := o.end(over); r.Cause != executor.Exited || !strings.Contains(r.Detail, "scratch") {
		t.Errorf("over its scratch: %+v", r)
	}
	if o.groups.mem == "" {
		return // the status says why, as TestMemoryIsHeld looks up
	}
	greedy := stranger(2, "site-1", alone+"exec "+eat)
	greedy.Need.MemMiB = 32
	o.begin(greedy)
	if got := o.firstLine(greedy); got != "up" {
		t.Fatalf("%q", got)
	}
	s := o.slotOf(greedy)
	if err := unix.Kill(s.pid, unix.SIGSTOP); err != nil { // what it does not see yet, it ends nobody for
		t.Fatal(err)
	}
	if err := s.stack.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := eventually(patience, func() bool { return len(descendants(s.pid)) == 0 })
	if err := unix.Kill(s.pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := o.end(greedy); !ended || r.Cause != executor.Exited || !strings.Contains(r.Detail, "out of memory (limit 32Mi)") {
		t.Errorf("out of memory: %+v", r)
	}
}

// TestEndedBeforeItsNetworkIsMissed: what has ended by itself when the loss is seen was not ended for that.
func TestEndedBeforeItsNetworkIsMissed(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	if err = unix.Close(pair[1]); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"exit 7", "exec sleep 60"} {
		a := &attempt{supervisor: &supervisor{network: pair[0], pulse: pulse{bound: time.Hour}}}
		child := startShell(t, script)
		a.Pid = child.Pid
		ends := script == "exit 7"
		if ends {
			var info unix.Siginfo
			if err = unix.Waitid(unix.P_PID, a.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
		}
		if a.seeNetwork(executor.Boottime()); !a.cut || a.ours == ends {
			t.Errorf("%q: cut %v, ended by us %v", script, a.cut, a.ours)
		}
	}
}

// startShell starts a script, and ends it with the test.
func startShell(t *testing.T, script string) *os.Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // its end is the test's
	return cmd.Process
}
