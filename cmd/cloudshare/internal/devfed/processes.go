package devfed

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// cmdline of a process; nil if it is gone or a zombie.
func cmdline(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// endTasks ends what tasks of the brokers under dir have left running: their
// supervisors are told to stop their attempts, and what then still runs is
// killed. It returns how many processes outlived that.
func endTasks(dir string) int {
	for _, pid := range supervisors(dir) {
		_ = syscall.Kill(pid, syscall.SIGTERM) // gone is fine
	}
	await(4*time.Second, func() bool { return len(supervisors(dir)) == 0 })
	await(2*time.Second, func() bool {
		left := append(supervisors(dir), tasksOf(dir)...)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
	return len(supervisors(dir)) + len(tasksOf(dir))
}

// supervisors returns the processes "cloudshare supervise" that work under dir.
func supervisors(dir string) []int {
	return processes(func(pid int) bool {
		args := cmdline(pid)
		if len(args) < 2 || args[1] != "supervise" {
			return false
		}
		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		return err == nil && under(dir, strings.TrimSuffix(cwd, " (deleted)"))
	})
}

// workdirVar is how executor/local marks the processes of an attempt.
const workdirVar = config.EnvPrefix + "WORKDIR="

// tasksOf returns the processes of tasks whose private folder is under dir.
func tasksOf(dir string) []int {
	return processes(func(pid int) bool {
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			return false
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if work, ok := bytes.CutPrefix(kv, []byte(workdirVar)); ok {
				return under(dir, string(work))
			}
		}
		return false
	})
}

func under(dir, path string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

// processes lists the pids that match.
func processes(match func(pid int) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 1 && pid != os.Getpid() && match(pid) {
			out = append(out, pid)
		}
	}
	return out
}
