package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Verb is the argument with which the program is Serve.
const Verb = "sandbox-network"

// fdSandbox is the socket to the sandbox's first process, which a stack inherits.
const fdSandbox = 3

// maxMemory is where the collector works harder; what connections hold is bounded besides.
const maxMemory = 96 << 20

// Ready is what Serve tells the sandbox once it works, and whenever it is asked by Ask: it does not hang then.
const (
	Ready = "ready"
	Ask   = "?"
)

// Command returns what starts a stack for a sandbox of a plan, of which it needs to know the user alone. By the name
// others find it.
func Command(executable, name string, p sandbox.Plan) *exec.Cmd {
	p = sandbox.Plan{UID: p.UID, GID: p.GID, Become: p.Become}
	cmd := exec.Command(executable, Verb, name, p.Encode())
	cmd.Dir, cmd.SysProcAttr = "/", p.AloneAttributes()
	return cmd
}

// NameOf returns the name of the stack whose command line this is, as /proc has it; "" = it is no stack's.
func NameOf(line []byte) string {
	args := bytes.Split(line, []byte{0})
	if len(args) < 3 || string(args[1]) != Verb {
		return ""
	}
	return string(args[2])
}

// Serve is the life of a stack's process; args is what follows Verb on the command line. It ends with the sandbox,
// whose end the kernel tells by the socket. It returns the exit code.
func Serve(args []string) int {
	debug.SetMemoryLimit(maxMemory)
	if err := serve(args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Verb, err)
		return 1
	}
	return 0
}

func serve(args []string) error {
	if err := confine(args); err != nil {
		return err
	}
	if nonlocal() {
		return errors.New("this machine lets programs bind any address, so its own cannot be told from others: " +
			"set net.ipv4.ip_nonlocal_bind to 0")
	}
	device, err := receiveDevice(fdSandbox)
	if device == nil || err != nil {
		return err // nil: the sandbox has ended before
	}
	s, err := newStack(device)
	if err != nil {
		return err
	}
	go func() {
		// Whoever does not read its answers has asked often enough.
		s.run(func() { _ = unix.Send(fdSandbox, []byte(Ready), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) })
		_ = unix.Shutdown(fdSandbox, unix.SHUT_RDWR) // without its device it ends, and is replaced with its sandbox
	}()
	if err = unix.Send(fdSandbox, []byte(Ready), unix.MSG_NOSIGNAL); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("tell the sandbox: %w", err)
	}
	return awaitEnd(fdSandbox, s.ask)
}

// confine takes rights from this process that it does not need: it reads what strangers send. Only its sandbox ends it:
// a machine that goes down asks all programs to end, and the task would fail by that.
func confine(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got %d arguments: give a name and a plan", len(args))
	}
	p, err := sandbox.Decode(args[1])
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	return p.EnterAlone()
}

// receiveDevice takes what sandbox.GiveDevice sends; nil means that the sandbox has ended.
func receiveDevice(socket int) (*os.File, error) {
	var one [16]byte
	rights := make([]byte, unix.CmsgSpace(4))
	var n, nr int
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, nr, _, _, err = unix.Recvmsg(socket, one[:], rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("take the sandbox's device: %w", err)
	}
	if n == 0 && nr == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("take the sandbox's device: %d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("take the sandbox's device: %d files: %w", len(fds), err)
	}
	if err = unix.SetNonblock(fds[0], true); err != nil {
		return nil, fmt.Errorf("take the sandbox's device: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "device"), nil
}

// awaitEnd waits until nobody has the other end of the socket: the sandbox's first process keeps it, and no other does.
// What comes by it asks whether the stack hangs.
func awaitEnd(socket int, asked func()) error {
	var buf [16]byte
	for {
		n, _, err := unix.Recvfrom(socket, buf[:], 0)
		switch {
		case err == nil && n > 0:
			asked()
		case errors.Is(err, unix.EINTR):
		case err == nil, errors.Is(err, unix.ECONNRESET):
			return nil
		default:
			return fmt.Errorf("wait for the sandbox's end: %w", err)
		}
	}
}
