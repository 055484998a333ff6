package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// TestWhoseFaultIsIt: a command that is wrong fails its task; what its site lacks does
// not.
func TestWhoseFaultIsIt(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	task := executor.Task{Command: []string{"cmd"}}
	tiny := task
	tiny.Need.MemMiB = 1
	for _, c := range []struct {
		err  error
		file string
		task executor.Task
		want executor.Cause
		code int
	}{
		{syscall.ENOENT, "/x", task, executor.NoStart, 127},
		{syscall.EACCES, "/x", task, executor.NoStart, 126},
		{syscall.ENOEXEC, "/x", task, executor.NoStart, 126},
		{syscall.E2BIG, "/x", task, executor.NoStart, 126},
		{syscall.ETXTBSY, "/x", task, executor.NoStart, 126},
		{syscall.EIO, whole, task, executor.NoStart, 126}, // a program that is cut off
		{syscall.ENOMEM, "/x", tiny, executor.NoStart, 126},
		{syscall.EIO, "/x", task, executor.Declined, 0},
		{syscall.ENOMEM, "/x", task, executor.Declined, 0},
		{syscall.EAGAIN, "/x", task, executor.Declined, 0},
		{syscall.EMFILE, "/x", task, executor.Declined, 0},
		{syscall.ENFILE, "/x", task, executor.Declined, 0},
		{syscall.ENODEV, "/x", task, executor.Declined, 0},
		{syscall.ENOSPC, "/x", task, executor.Declined, 0},
		{syscall.EPERM, "/x", task, executor.Declined, 0},
	} {
		r := NotBegun(fmt.Errorf("begin: %w", StartError(c.task, c.file, c.err)))
		if r.Cause != c.want || r.ExitCode != c.code || r.Detail == "" {
			t.Errorf("%v of %s: got %+v, want cause %d and code %d", c.err, c.file, r, c.want, c.code)
		}
	}
	if r := NotBegun(errors.New("no command given")); r.Cause != executor.NoStart || r.ExitCode != 126 {
		t.Errorf("an error of the task's: %+v", r)
	}
}
