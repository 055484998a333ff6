package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
)

// startStack starts the process that has the network of a sandbox about to be made: it ends when nobody has the socket
// that is returned any more, which the sandbox's first process inherits. It outlives the broker as a supervisor does.
func (c *containment) startStack(executable string, log io.Writer) (socket *os.File, stack *os.Process, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the socket to a network: %w", err)
	}
	socket, theirs := os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "sandbox")
	defer theirs.Close()
	cmd := exec.Command(executable, outbound.Arguments(c.plan.UID, c.plan.GID)...)
	cmd.Dir, cmd.ExtraFiles, cmd.Stderr, cmd.Env = "/", []*os.File{theirs}, log, supervisorEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		socket.Close()
		return nil, nil, fmt.Errorf("start the process of a network: %w", err)
	}
	return socket, cmd.Process, nil
}

// addStack gives the sandbox that cmd makes the network of a stack.
func (h *Handler) addStack(cmd *exec.Cmd) (socket *os.File, stack *os.Process, err error) {
	socket, stack, err = h.contain.startStack(h.cfg.Executable, h.stderr)
	if err == nil {
		inheritStack(cmd, socket)
	}
	return socket, stack, err
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
	return awaitStack(s.network)
}

// stackWithin is how long a stack may take to say that it works, when that is tried.
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

// networkLost reports whether the sandbox had a network whose process has gone: then it serves nobody any more.
func (s *supervisor) networkLost() bool {
	if s.network == 0 {
		return false
	}
	var said [16]byte
	n, err := 1, error(nil)
	for n > 0 && err == nil { // what it said when it began
		n, _, err = unix.Recvfrom(s.network, said[:], unix.MSG_DONTWAIT)
	}
	return err == nil || errors.Is(err, unix.ECONNRESET)
}
