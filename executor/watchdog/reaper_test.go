package watchdog

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// firstVar has a test be the first process of a pid namespace.
const firstVar = "BE_FIRST_PROCESS"

// TestOrphanWithTheTasksNumber: while leftovers are reaped, an orphan that has got the
// number of the task's own process does not set the task's exit status.
func TestOrphanWithTheTasksNumber(t *testing.T) {
	if !inside(t) {
		return
	}
	r := reaper{Pid: spawn(t, "exit 3")}
	await(t, &r, func() bool { return r.Exited })
	const next = "/proc/sys/kernel/ns_last_pid"
	for range 100 { // threads of this process get numbers, too
		if err := os.WriteFile(next, []byte(strconv.Itoa(r.Pid-1)), 0); err != nil {
			t.Logf("the next number cannot be chosen here: %v", err)
			return
		}
		if spawn(t, "exit 0") == r.Pid {
			await(t, &r, func() bool { return false })
			if r.Status.ExitStatus() != 3 {
				t.Errorf("exited with 3, told: %d", r.Status.ExitStatus())
			}
			return
		}
	}
	t.Error("no orphan got the number")
}

func spawn(t *testing.T, script string) int {
	t.Helper()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// await reaps until that is so, or no child is left.
func await(t *testing.T, r *reaper, enough func() bool) {
	t.Helper()
	for !enough() && r.reap() {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
}
