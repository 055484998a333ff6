package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
)

// startStack starts the process that has the network of a sandbox about to be made: it ends when nobody has the socket
// that is returned any more, which the sandbox's first process inherits. It outlives the broker as a supervisor does.
func (c *containment) startStack(executable, name string, log *os.File, in stackBirth) (
	socket *os.File, stack *os.Process, err error,
) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the socket to a network: %w", err)
	}
	socket, theirs := os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "sandbox")
	defer theirs.Close()
	cmd := outbound.Command(executable, name, c.plan)
	cmd.ExtraFiles, cmd.Stderr, cmd.Env = []*os.File{theirs}, log, supervisorEnv()
	in.prepare(cmd.SysProcAttr)
	if err = cmd.Start(); err != nil {
		socket.Close()
		return nil, nil, fmt.Errorf("start the process of a network in namespaces of its own: %w", err)
	}
	if err = in.begun(cmd.Process.Pid); err != nil {
		socket.Close()
		endStack(cmd.Process, func() {})
		return nil, nil, err
	}
	return socket, cmd.Process, nil
}

// addStack gives the sandbox of a slot, which cmd makes, the network of a stack.
func (h *Handler) addStack(s *slot, cmd *exec.Cmd) (socket *os.File, err error) {
	s.names = namesFile()
	in, err := h.groups.stackBirth(s.name)
	if err != nil {
		return nil, err
	}
	defer in.close()
	socket, s.stack, err = h.contain.startStack(h.cfg.Executable, s.name, h.stderr, in)
	if err == nil {
		inheritStack(cmd, socket)
	}
	return socket, err
}

// namesFile is the file that names the machine's name servers as of now, nil = none does.
func namesFile() os.FileInfo {
	st, _ := os.Stat(sandbox.ResolvConf)
	return st
}

// hasOldNames reports whether that file was replaced since a sandbox's stack has begun, which may see the one of then.
func (s *slot) hasOldNames() bool {
	if s.network != executor.NetworkOutbound {
		return false
	}
	now := namesFile()
	return (now == nil) != (s.names == nil) || now != nil && !os.SameFile(now, s.names)
}

// endStack ends a stack whose sandbox has gone: one that hangs would not see that. then is done once it has ended, for
// which nobody waits long: a process that waits for a disk takes no signal.
func endStack(stack *os.Process, then func()) {
	if stack == nil {
		return
	}
	_ = stack.Kill()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = stack.Wait()
		then()
	}()
	select {
	case <-ended:
	case <-time.After(endedWithin):
	}
}

// endOldStack does so by the slot's name, if an earlier broker has started it.
func (s *slot) endOldStack() {
	if s.stack == nil {
		endStacks(func(slot string) bool { return slot == s.name })
	}
}

// endStacks ends those of some slots. What they have in their environment would not do to find them: only root may read
// that.
func endStacks(of func(slot string) bool) {
	for _, pid := range pids() {
		p, ok := readProcess(pid)
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if name := outbound.NameOf(line); ok && err == nil && name != "" && of(name) {
			p.signal(unix.SIGKILL)
			awaitExit(p, endedWithin)
		}
	}
}

// endedWithin is how long one is waited for: its cgroup can be removed then. One that waits for a disk takes no signal.
const endedWithin = 100 * time.Millisecond

// tryOutbound makes the sandbox of cmd with a stack and lets both go again; the error says what either said.
func (c *containment) tryOutbound(cfg Config, cmd *exec.Cmd, dir string, said *bytes.Buffer) error {
	path := filepath.Join(dir, "network")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	name := filepath.Base(dir)
	in, err := c.groups.tryStackBirth(name, &c.plan)
	defer in.close()
	if err != nil {
		c.groups.remove(name)
		return err
	}
	socket, stack, err := c.startStack(cfg.Executable, name, log, in)
	if err != nil {
		c.groups.remove(name)
		return err
	}
	defer endStack(stack, func() { c.groups.remove(name) })
	defer socket.Close()
	inheritStack(cmd, socket)
	if err = tried(cmd.Run(), said); err == nil {
		return nil
	}
	why, rerr := os.ReadFile(path)
	first, _, _ := strings.Cut(strings.TrimSpace(string(why)), "\n")
	if rerr != nil || first == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.TrimPrefix(first, outbound.Verb+": "))
}

// inheritStack has a supervisor find the socket.
func inheritStack(cmd *exec.Cmd, socket *os.File) {
	const standard = 3
	cmd.Args = append(cmd.Args, "-network", strconv.Itoa(standard+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, socket)
}

// joinNetwork makes the sandbox's way to its stack.
func (s *supervisor) joinNetwork(try bool) error {
	if s.network == 0 {
		return nil
	}
	unix.CloseOnExec(s.network) // it ends with this process, so no task may hold it
	if err := sandbox.GiveDevice(s.network); err != nil || !try {
		return err
	}
	return s.awaitNetwork()
}

// awaitNetwork waits until the stack has said that it works, if it has not yet. One that fails while it begins is its
// site's trouble, and no task's that has begun beside it.
func (s *supervisor) awaitNetwork() error {
	if s.network == 0 || s.stands {
		return nil
	}
	err := awaitStack(s.network)
	if s.stands = err == nil; s.stands {
		s.heardStack(executor.Boottime())
	}
	return err
}

// stackWithin is how long a stack may take to say that it works.
const stackWithin = 20 * time.Second

// awaitStack waits until it says so.
func awaitStack(socket int) error {
	patience := unix.NsecToTimeval(int64(stackWithin))
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return err
	}
	var said [16]byte
	n, _, err := unix.Recvfrom(socket, said[:], 0)
	if err != nil || string(said[:n]) != outbound.Ready {
		return fmt.Errorf("its network's process has ended or says nothing (%q, %w)", said[:n], err)
	}
	return nil
}

// networkLost reports whether the sandbox had a network whose process has gone, or hangs: then it serves nobody any
// more.
func (s *supervisor) networkLost() bool {
	if s.network == 0 {
		return false
	}
	var said [16]byte
	n, _, err := unix.Recvfrom(s.network, said[:], unix.MSG_DONTWAIT)
	for ; n > 0 && err == nil; n, _, err = unix.Recvfrom(s.network, said[:], unix.MSG_DONTWAIT) {
		s.pulse.owed = 0 // it has answered, or said that it works
	}
	return s.pulse.hangs || err == nil || errors.Is(err, unix.ECONNRESET)
}
