package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// child is one command of the testbed, reaped by its own goroutine.
type child struct {
	cmd  *exec.Cmd
	file string        // holds its output
	done chan struct{} // closed when it ended; err is set before
	err  error
}

func watch(cmd *exec.Cmd, file string) *child {
	c := &child{cmd: cmd, file: file, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c
}

// failed returns why the command ended, or nil while it runs or after exit 0.
func (c *child) failed() error {
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.cmd, c.err)
		}
	default:
	}
	return nil
}

// await the end by itself.
func (c *child) await(ctx context.Context) error {
	select {
	case <-c.done:
		return c.failed()
	case <-ctx.Done():
		return fmt.Errorf("await end of %s: %w", c.cmd, context.Cause(ctx))
	}
}

func (c *child) signal(sig syscall.Signal) {
	select {
	case <-c.done:
	default:
		_ = c.cmd.Process.Signal(sig) // it may have ended by now
	}
}

// wait for the end, by force after d.
func (c *child) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		if c.err != nil && !endedBy(c.err, syscall.SIGTERM) {
			return fmt.Errorf("%s: %w\n%s", c.cmd, c.err, c.output())
		}
		return nil
	case <-timer.C:
		c.signal(syscall.SIGKILL)
		<-c.done
		return fmt.Errorf("%s did not end within %s of SIGTERM\n%s", c.cmd, d, c.output())
	}
}

func (c *child) output() string { return tail(c.file, 20) }

func endedBy(err error, sig syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	ws, ok := exit.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == sig
}

// tail returns the last n lines of a file, headed by its name.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "--- " + filepath.Base(path) + "\n" + strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// noneLeft reports processes that still work in the data folder: an orderly
// end takes all tasks and supervisors along.
func noneLeft(dir string) error {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return fmt.Errorf("look for processes left: %w", err)
	}
	var left []error
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(cwd, dir+string(filepath.Separator)) {
			continue // gone, or not ours
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline")) // for the message
		left = append(left, fmt.Errorf("left behind: %s %q", filepath.Dir(link), args))
	}
	return errors.Join(left...)
}
