package netlab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Host is one network and mount namespace with one link.
type Host struct {
	Addr string // its IP address

	tun   *os.File
	tasks chan func() // run on the thread that lives in the namespaces
	once  sync.Once
}

// newHost starts the thread and configures its namespaces.
func newHost(n int) (*Host, error) {
	h := &Host{
		Addr:  fmt.Sprintf("%d.%d.%d.%d", subnet[0], subnet[1], subnet[2], n),
		tasks: make(chan func()),
	}
	ready := make(chan error, 1)
	go h.live(ready, [4]byte{subnet[0], subnet[1], subnet[2], byte(n)})
	if err := <-ready; err != nil {
		return nil, err
	}
	return h, nil
}

// live runs tasks on a thread of its own in new namespaces. The thread is never
// unlocked: it ends with the goroutine, and no other goroutine gets to use it.
func (h *Host) live(ready chan<- error, addr [4]byte) {
	runtime.LockOSThread()
	tun, err := enter(addr)
	if err != nil {
		ready <- err
		return
	}
	h.tun = tun
	ready <- nil
	for task := range h.tasks {
		task()
	}
}

// enter moves the calling thread into new namespaces and gives them an address.
func enter(addr [4]byte) (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	// What is mounted here must not show up outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	tun, err := openTun("site0")
	if err != nil {
		return nil, err
	}
	if err := configure("site0", addr); err != nil {
		tun.Close()
		return nil, err
	}
	return tun, nil
}

// Do runs f in the host's namespaces. Tasks run one at a time and must not
// block for long.
func (h *Host) Do(f func() error) error {
	done := make(chan error, 1)
	h.tasks <- func() { done <- f() }
	return <-done
}

// Start starts a command in the host. It dies with this process.
func (h *Host) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// The signal comes when the thread ends that started it: the host's own,
	// which lives as long as the host.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return h.Do(cmd.Start)
}

// Run runs a command in the host, and returns what it wrote with its failure.
func (h *Host) Run(ctx context.Context, name string, args ...string) error {
	return h.Do(func() error {
		if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("run %s %q: %w: %s", name, args, err, out)
		}
		return nil
	})
}

// Names makes a file the host's /etc/hosts.
func (h *Host) Names(file string) error {
	return h.Do(func() error {
		if err := unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("put %s in place of /etc/hosts: %w", file, err)
		}
		return nil
	})
}

// dialWait bounds a connection that is being made inside a host.
const dialWait = time.Second

// Dial connects from within the host: a client that sits beside what runs
// there and that no cut separates from it.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.Do(func() (err error) {
		d := net.Dialer{Timeout: dialWait}
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// receive has a packet arrive.
func (h *Host) receive(packet []byte) {
	_, _ = h.tun.Write(packet) // a network may lose packets
}

func (h *Host) close() (err error) {
	h.once.Do(func() {
		close(h.tasks)
		err = h.tun.Close()
	})
	return err
}
