package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// guardedVar has the test program guard itself, and try what a task might.
const guardedVar = "BE_GUARDED"

func TestMain(m *testing.M) {
	if os.Getenv(guardedVar) != "" {
		os.Exit(guarded(os.Stdout))
	}
	if os.Getenv(aloneVar) != "" {
		os.Exit(alone(os.Stdout))
	}
	os.Exit(m.Run())
}

// guarded says what the filter refuses to a process of it: what is aimed at the first
// process's threads, and none of its own.
func guarded(out io.Writer) int {
	if err := Guard(6); err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	me := os.Getpid()
	for name, err := range map[string]error{
		"priority of a thread": unix.Setpriority(unix.PRIO_PROCESS, me, 0),
		"priority of a user":   unix.Setpriority(unix.PRIO_USER, 0, 0),
		"CPUs of a thread":     unix.SchedSetaffinity(me, &unix.CPUSet{}),
		"limits":               unix.Prlimit(me, unix.RLIMIT_CORE, &unix.Rlimit{}, nil),
		"a key":                keyctl(),
		"a lease":              lease(),
		"a user namespace":     unix.Unshare(unix.CLONE_NEWUSER),
	} {
		fmt.Fprintf(out, "%s %v\n", name, errors.Is(err, unix.EPERM))
	}
	fmt.Fprintln(out, "own priority", unix.Setpriority(unix.PRIO_PROCESS, 0, 0) == nil)
	fmt.Fprintln(out, "later threads", unix.Setpriority(unix.PRIO_PROCESS, 1<<22, 0) == unix.ESRCH)
	said, err := exec.Command("/bin/true").CombinedOutput()
	fmt.Fprintln(out, "children", err == nil, string(said))
	return 0
}

func lease() error {
	_, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}

func keyctl() error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
	return err
}

// TestGuard: a process under the filter changes nothing of the threads that were there
// before, and everything of its own.
func TestGuard(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), guardedVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "false") || strings.Count(string(out), "true") != 10 {
		t.Errorf("%v:\n%s", err, out)
	}
}
