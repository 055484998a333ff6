package local

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// BenchmarkSandbox: /bin/true from its start to its end, in a sandbox that its owner has
// used and in one of a new owner's, beside a fork and exec into the same namespaces and
// beside bubblewrap, whose root is like a sandbox's.
func BenchmarkSandbox(b *testing.B) {
	b.Run("namespaces", func(b *testing.B) { wholeRuns(b, func() *exec.Cmd { return exec.Command("/bin/true") }) })
	b.Run("same-owner", func(b *testing.B) { ownerRuns(b, func(int64) string { return "site-1" }) })
	b.Run("new-owner", func(b *testing.B) { ownerRuns(b, func(i int64) string { return fmt.Sprintf("site-%d", i) }) })
	path, err := exec.LookPath("bwrap")
	if err != nil {
		b.Log("NOT MEASURED: bubblewrap is not installed (apt-get install bubblewrap)")
		return
	}
	b.Run("bubblewrap", func(b *testing.B) {
		args := []string{
			"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev",
			"--tmpfs", "/tmp",
		}
		for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
			if to, err := os.Readlink("/" + dir); err == nil {
				args = append(args, "--symlink", to, "/"+dir)
			} else if _, err = os.Stat("/" + dir); err == nil {
				args = append(args, "--ro-bind", "/"+dir, "/"+dir)
			}
		}
		quantiles(b, func(int64) time.Duration {
			return timed(b, exec.Command(path, append(args, "/bin/true")...))
		})
	})
}

func wholeRuns(b *testing.B, command func() *exec.Cmd) {
	quantiles(b, func(int64) time.Duration {
		cmd := command()
		cmd.SysProcAttr = namespaces()
		return timed(b, cmd)
	})
}

func timed(b *testing.B, cmd *exec.Cmd) time.Duration {
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Errorf("%s: %v: %s", cmd.Path, err, out)
	}
	return time.Since(began)
}

// ownerRuns times tasks of owners.
func ownerRuns(b *testing.B, owner func(i int64) string) {
	r := newRouter(b, 1, ContainAll)
	r.runOf(b, 0, owner(0))
	quantiles(b, func(i int64) time.Duration {
		began := time.Now()
		r.runOf(b, i+1, owner(i+1+int64(b.N)*1000))
		return time.Since(began)
	})
}

// BenchmarkSupervisor: memory of one that has run a task and waits, outside of a sandbox
// and as a sandbox's first process; CLOUDSHARE_BINARY names the program to be one.
func BenchmarkSupervisor(b *testing.B) {
	for name, whom := range map[string]Whom{"plain": ContainNobody, "contained": ContainAll} {
		b.Run(name, func(b *testing.B) {
			r := newRouter(b, 1, whom)
			for i := range int64(b.N) {
				r.runOf(b, i+int64(b.N)*1000, "site-1")
			}
			r.h.mu.Lock()
			defer r.h.mu.Unlock()
			for _, s := range r.h.slots {
				b.ReportMetric(memoryOf(b, s.pid, "status", "VmRSS"), "rss-KiB")
				b.ReportMetric(memoryOf(b, s.pid, "smaps_rollup", "Pss"), "pss-KiB") // root's to read of a contained one
				b.ReportMetric(memoryOf(b, s.pid, "status", "RssAnon"), "own-KiB")
			}
		})
	}
}

// memoryOf reads a line of a process's file, in KiB; 0 = it may not be read.
func memoryOf(b *testing.B, pid int, file, line string) (kib float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\n"+line+":")
	if _, err = fmt.Sscan(rest, &kib); err != nil {
		b.Errorf("%s of process %d has no %s: %v", file, pid, line, err)
	}
	return kib
}
