package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// hierarchies of the machine: a folder each with cgroup v1, one with v2.
func hierarchies() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	all, _ := filepath.Glob("/sys/fs/cgroup/*")
	return slices.DeleteFunc(all, func(dir string) bool {
		f, err := os.Lstat(dir)
		return err != nil || !f.IsDir() // links name the same ones twice
	})
}

// makeCgroups makes those below which a kubelet puts its pods: it wants them there.
func (n *Node) makeCgroups() error {
	var errs []error
	for _, h := range hierarchies() {
		at := h
		for _, name := range strings.Split(n.cgroup, "/") {
			at = filepath.Join(at, name)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				errs = append(errs, fmt.Errorf("make a cgroup: %w", err))
			}
			// An empty cpuset takes no process.
			for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
				if b, err := os.ReadFile(filepath.Join(filepath.Dir(at), f)); err == nil && filepath.Base(h) == "cpuset" {
					errs = append(errs, os.WriteFile(filepath.Join(at, f), b, 0o600))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// walk visits the node's cgroups, each after those below it.
func (n *Node) walk(visit func(dir string)) {
	for _, h := range hierarchies() {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(h, n.cgroup), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // what has gone meanwhile is no fault
		})
		for _, d := range slices.Backward(dirs) {
			visit(d)
		}
	}
}

// pids of the processes in the node's pods.
func (n *Node) pids() []string {
	found := map[string]bool{}
	n.walk(func(dir string) {
		b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, pid := range strings.Fields(string(b)) {
			found[pid] = true
		}
	})
	all := make([]string, 0, len(found))
	for pid := range found {
		all = append(all, pid)
	}
	return all
}

// killPods kills until nothing is left.
func (n *Node) killPods() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = testbed.Await(ctx, "the end of pods", func() error { // the folder's removal fails if it is not so
		pids := n.pids()
		for _, pid := range pids {
			if i, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(i, syscall.SIGKILL)
			}
		}
		if len(pids) > 0 {
			return fmt.Errorf("%d processes are there", len(pids))
		}
		return nil
	})
}

func (n *Node) removeCgroups() {
	n.walk(func(dir string) { _ = os.Remove(dir) })
	for _, h := range hierarchies() {
		_ = os.Remove(filepath.Join(h, filepath.Dir(n.cgroup))) // the last node's removal succeeds
	}
}
