package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// patience bounds every wait for a component; it is far above what one needs.
const patience = 60 * time.Second

// Process is one component of a cluster. It can be ended and started again any
// number of times; its methods may be called by several goroutines.
type Process struct {
	Name string

	program string
	args    []string
	dir     string // where it works
	log     string // holds what all its starts said
	// ready is asked until it returns nil; nil asks nothing.
	ready func(context.Context) error
	// alone is a folder that is locked from its start until it is ready: of all processes
	// with the same one, also of other tests' programs, one starts at a time. "" = any.
	alone string

	mu   sync.Mutex
	cmd  *exec.Cmd     // of the last start; nil before the first
	done chan struct{} // closed when it has ended
}

// Start starts the component, which must not run, and waits until it is ready.
func (p *Process) Start(ctx context.Context) error {
	if p.alone != "" {
		unlock, err := lockFolder(p.alone)
		if err != nil {
			return fmt.Errorf("start %s: %w", p.Name, err)
		}
		defer unlock()
	}
	if err := p.launch(); err != nil {
		return err
	}
	return p.Await(ctx)
}

// launch starts it and does not wait.
func (p *Process) launch() error {
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.program, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	// A terminal's ^C goes to the test, and the test's death to the component.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	began, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		// The system tells of the death of the *thread* that forked: it lives as long
		// as the child, and ends with this goroutine.
		runtime.LockOSThread()
		failed := cmd.Start()
		began <- failed
		if failed == nil {
			_ = cmd.Wait() // however it ends, its log says why
		}
	}()
	if err = <-began; err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done = cmd, done
	return nil
}

// Await returns once the component is ready; its own last words are in the error.
func (p *Process) Await(ctx context.Context) error {
	if p.ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := testbed.Await(ctx, p.Name+" ready", func() error {
		if !p.Runs() {
			return testbed.Final(errors.New("it ended"))
		}
		return p.ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Log(20))
	}
	return nil
}

// Runs reports whether its process is there.
func (p *Process) Runs() bool {
	_, done := p.last()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// PID of the last start; 0 before the first.
func (p *Process) PID() int {
	cmd, _ := p.last()
	if cmd == nil {
		return 0
	}
	return cmd.Process.Pid
}

// Signal sends a signal: SIGSTOP makes it hang, SIGCONT go on.
func (p *Process) Signal(sig syscall.Signal) {
	if cmd, _ := p.last(); cmd != nil {
		_ = cmd.Process.Signal(sig) // it may have ended
	}
}

// Kill ends it at once, and waits for that.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	if _, done := p.last(); done != nil {
		<-done
	}
}

// Stop asks it to end and waits for that; one that does not is killed.
func (p *Process) Stop() {
	p.Signal(syscall.SIGCONT)
	p.Signal(syscall.SIGTERM)
	_, done := p.last()
	if done == nil {
		return
	}
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		p.Kill()
	}
}

// listensAt returns nil if the process has a socket of that path.
func (p *Process) listensAt(path string) error {
	all, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	own, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID()))
	if err != nil {
		return err
	}
	at := map[string]bool{} // of any process; each names the path
	for line := range strings.Lines(string(all)) {
		if f := strings.Fields(line); len(f) == 8 && f[7] == path {
			at["socket:["+f[6]+"]"] = true
		}
	}
	for _, fd := range own {
		if to, err := os.Readlink(fd); err == nil && at[to] {
			return nil
		}
	}
	return fmt.Errorf("%s does not listen at %s", p.Name, path)
}

// Log returns the last n lines that it wrote, headed by its name.
func (p *Process) Log(n int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return "--- " + p.Name + "\n" + string(bytes.Join(lines[max(0, len(lines)-n-1):], nil))
}

func (p *Process) last() (*exec.Cmd, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.done
}
