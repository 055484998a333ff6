package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// workdirVar is in the environment of every process of a task.
const workdirVar = "CLOUDSHARE_WORKDIR="

// under lists the processes that belong to a folder: brokers by their
// arguments, supervisors by where they work, tasks by their environment.
func under(dir string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid > 1 && pid != os.Getpid() && belongs(filepath.Join("/proc", e.Name()), dir) {
			out = append(out, pid)
		}
	}
	return out, nil
}

// belongs looks at one process; one that is gone or a zombie belongs nowhere.
func belongs(proc, dir string) bool {
	inside := dir + string(filepath.Separator)
	args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if err != nil || len(args) == 0 {
		return false
	}
	fields := bytes.Split(args, []byte{0})
	if len(fields) > 3 && string(fields[1]) == "broker" && strings.HasPrefix(string(fields[3]), inside) {
		return true
	}
	if cwd, e := os.Readlink(filepath.Join(proc, "cwd")); e == nil && strings.HasPrefix(cwd, inside) {
		return true
	}
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	return err == nil && bytes.Contains(env, []byte(workdirVar+inside))
}

// argument returns one of a process's arguments, "" if there is none.
func argument(proc string, n int) string {
	args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if fields := bytes.Split(args, []byte{0}); err == nil && n < len(fields) {
		return string(fields[n])
	}
	return ""
}

// killUnder kills every process of a folder, waits until they are gone, and
// says how many there were.
func killUnder(dir string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	killed := map[int]bool{}
	err := testbed.Await(ctx, "end of all processes in "+dir, func() error {
		pids, err := under(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			killed[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
		return fmt.Errorf("still there: %v", pids)
	})
	return len(killed), err
}

// dirPrefix of the folders of runs, by which stale ones are found.
const dirPrefix = "cloudshare-chaos-"

// sweep ends what runs that were killed have left: their processes and folders.
// A run that goes on holds a lock in its folder.
func sweep(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for stale runs: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, keptFile)); err == nil {
			continue // somebody wants to look at it
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue // in use
		}
		_, err = killUnder(dir)
		errs = append(errs, err, os.RemoveAll(dir), lock.Close())
	}
	return errors.Join(errs...)
}

// keptFile marks the folder of a run that failed.
const keptFile = "kept"

// lockDir takes the folder; the lock goes with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// makeDir makes and locks the folder of a run.
func makeDir(parent string) (string, *os.File, error) {
	if err := sweep(parent); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(parent, dirPrefix+time.Now().Format("0102-150405-"))
	if err != nil {
		return "", nil, fmt.Errorf("make folder: %w", err)
	}
	lock, err := lockDir(dir)
	return dir, lock, err
}
