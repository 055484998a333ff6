package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// aloneVar has the test program be alone, and try what code might that has got into such a process.
const aloneVar = "BE_ALONE"

func alone(out io.Writer) int {
	p, err := Decode(os.Getenv(aloneVar))
	if err == nil {
		err = p.EnterAlone()
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	_, passwd := os.Stat("/etc/passwd")
	proc, _ := os.ReadDir("/proc")
	_, local := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	_, world := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	flow, datagrams := net.Dial("udp4", "127.0.0.1:9")
	if datagrams == nil {
		flow.Close()
	}
	made := os.WriteFile("/file", nil, 0o600)
	program := syscall.Exec("/proc/self/exe", nil, nil)
	for name, ok := range map[string]bool{
		"a file of the machine":   errors.Is(passwd, os.ErrNotExist),
		"processes":               len(proc) == 0,
		"a signal to all":         errors.Is(unix.Kill(-1, unix.SIGKILL), unix.ESRCH),
		"its starter":             os.Getppid() == 0,
		"a socket without a file": errors.Is(local, unix.EAFNOSUPPORT),
		"the world":               world == nil && datagrams == nil,
		"a file of its own":       errors.Is(made, unix.EROFS),
		"a program":               errors.Is(program, unix.EPERM),
		"a mount":                 errors.Is(unix.Mount("tmpfs", "/etc", "tmpfs", 0, ""), unix.EPERM),
		"a user namespace":        errors.Is(unix.Unshare(unix.CLONE_NEWUSER), unix.EPERM),
		"to be root":              os.Getuid() == p.UID && syscall.Setuid(0) != nil,
	} {
		fmt.Fprintf(out, "%s %t\n", name, ok)
	}
	return 0
}

// TestAlone: what works for a sandbox from outside sees no file and no process of the machine, and is refused ways to
// its services but the network.
func TestAlone(t *testing.T) {
	p := Plan{UID: os.Getuid(), GID: os.Getgid()}
	if p.UID == 0 {
		const nobody = 65534
		p = Plan{UID: nobody, GID: nobody, Become: true}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), aloneVar+"="+p.Encode())
	cmd.SysProcAttr = p.AloneAttributes()
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "false") || strings.Count(string(out), "true") != 11 {
		t.Errorf("%v:\n%s", err, out)
	}
}
