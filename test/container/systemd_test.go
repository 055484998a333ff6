//go:build container

package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// machine is a systemd in namespaces of its own, with the unit of deploy/systemd.
type machine struct {
	t    *testing.T
	init string // the pid of its first process
}

// boot starts one; it is gone when the test ends.
func boot(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	group, err := ownGroup(filepath.Base(filepath.Dir(dir)))
	must(t, err)
	g, err := os.Open(group)
	must(t, err)
	defer g.Close()
	unit, err := filepath.Abs("../../deploy/systemd")
	must(t, err)
	cmd := exec.Command("unshare", "--fork", "--kill-child", "-pmuinC", "--propagation", "private", "bash", "testdata/boot.sh", dir, group, solo.Binary, unit)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(g.Fd()), Setsid: true,
		Pdeathsig: syscall.SIGKILL,
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("it said:\n%s", &said)
		}
		removeGroups(t, group)
	})
	m := &machine{t: t}
	await(t, "systemd runs", func() error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if m.init = strings.TrimSpace(string(b)); err == nil && m.init == "" {
			err = errors.New("no child")
		}
		if err != nil {
			return err
		}
		out, err := m.try("systemctl", "is-system-running")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	return m
}

// ownGroup makes a cgroup of the v2 hierarchy, where systemd may rule.
func ownGroup(name string) (string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if mount := strings.Fields(lines.Text()); len(mount) > 2 && mount[2] == "cgroup2" {
			dir := filepath.Join(mount[1], "cloudshare-"+name)
			return dir, os.Mkdir(dir, 0o755)
		}
	}
	return "", errors.New("no cgroup v2 is mounted")
}

// removeGroups waits for the last processes to be gone.
func removeGroups(t *testing.T, group string) {
	t.Helper()
	_ = os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0o600)
	ctx, cancel := context.WithTimeout(context.Background(), solo.Limit)
	defer cancel()
	err := testbed.Await(ctx, "its cgroups are empty", func() error {
		var dirs []string
		err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
			err = os.Remove(dirs[i])
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// try runs a command in the machine; cloudshare asks as the site's operator.
func (m *machine) try(args ...string) (string, error) {
	if args[0] == "cloudshare" {
		args = slices.Insert(slices.Clone(args), 1, "--token-file=/var/lib/cloudshare/token")
	}
	in := []string{"-t", m.init, "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w"}
	b, err := exec.CommandContext(m.t.Context(), "nsenter", append(in, args...)...).CombinedOutput()
	return string(b), err
}

func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		log, _ := m.try("journalctl", "-u", "cloudshare", "--no-pager")
		m.t.Fatalf("%q: %v\n%s\n%s", args, err, out, log)
	}
	return out
}

func await(t *testing.T, what string, cond func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), solo.Limit)
	defer cancel()
	must(t, testbed.Await(ctx, what, cond))
}

// TestSystemd: the unit of deploy/systemd under a real systemd. It counts as
// started when the API answers; its user can write nothing but its data; a task is
// in a cgroup of its own, and outlives restarts and crashes of the broker with what it
// has in /tmp, /var/tmp and /dev/shm.
func TestSystemd(t *testing.T) {
	m := boot(t)
	m.run("systemd-sysusers")
	m.run("systemctl", "enable", "--now", "cloudshare") // returns when it is ready
	await(t, "the site is ready", func() error {
		out, err := m.try("cloudshare", "sites")
		if err == nil && !strings.Contains(out, "lab-a  alive") {
			err = errors.New(out)
		}
		return err
	})
	out := m.run("cloudshare", "submit", "--follow", "--", "sh", "-c",
		"id -un; grep NoNewPrivs /proc/self/status; touch /etc/mine /usr/mine 2>/dev/null || echo walls; unshare -U true 2>/dev/null || echo no namespaces; cat /proc/self/cgroup")
	for _, want := range []string{"NoNewPrivs:\t1\n", "walls\n", "no namespaces\n", "/system.slice/cloudshare.service/cloudshare-"} {
		if !strings.Contains(out, want) {
			t.Errorf("a task does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "root\n") {
		t.Errorf("a task is root:\n%s", out)
	}
	id := strings.TrimSpace(m.run("cloudshare", "submit", "--", "sh", "-c",
		"echo tmp >/tmp/mine; echo var >/var/tmp/mine; echo shm >/dev/shm/mine; echo begun; sleep 8; cat /tmp/mine /var/tmp/mine /dev/shm/mine; touch /tmp/more && echo ended"))
	await(t, "the task runs", func() error {
		out, err := m.try("cloudshare", "logs", id)
		if err == nil && !strings.Contains(out, "begun\n") {
			err = errors.New(out)
		}
		return err
	})
	m.run("systemctl", "restart", "cloudshare")
	pid := func() int {
		n, _ := strconv.Atoi(strings.TrimSpace(m.run("systemctl", "show", "-p", "MainPID", "--value", "cloudshare")))
		return n
	}
	before := pid()
	m.run("kill", "-KILL", strconv.Itoa(before))
	await(t, "it is started again", func() error {
		if n := pid(); n == 0 || n == before {
			return fmt.Errorf("its process is %d", n)
		}
		_, err := m.try("cloudshare", "sites")
		return err
	})
	await(t, "the task ends", func() error {
		out, err := m.try("cloudshare", "tasks", id)
		if err == nil && !strings.Contains(out, "0     succeeded  lab-a  1 ") {
			err = errors.New(out)
		}
		return err
	})
	if out := m.run("cloudshare", "logs", id); out != "begun\ntmp\nvar\nshm\nended\n" {
		t.Errorf("it said %q", out)
	}
	m.checkSandbox()
	m.run("systemctl", "stop", "cloudshare")
	if out := m.run("systemctl", "show", "-p", "Result", "cloudshare"); out != "Result=success\n" {
		t.Errorf("stopped: %s", out)
	}
}

// checkSandbox: the unit's walls leave room for sandboxes, which its own tasks are put into
// here.
func (m *machine) checkSandbox() {
	m.t.Helper()
	m.run("systemctl", "set-environment", "CLOUDSHARE_SANDBOX_TASKS=all", "CLOUDSHARE_SANDBOX_NETWORK=outbound")
	m.run("systemctl", "restart", "cloudshare")
	await(m.t, "it is started again", func() error {
		_, err := m.try("cloudshare", "sites")
		return err
	})
	if out := m.run("cloudshare", "status"); !strings.Contains(out, "all tasks run in sandboxes") {
		m.t.Errorf("no sandboxes:\n%s", out)
	} else if !strings.Contains(out, "other sites' with the world, but no private address") {
		m.t.Errorf("no network for sandboxes:\n%s", out)
	}
	out := m.run("cloudshare", "submit", "--follow", "--", "sh", "-c",
		"pwd; ls -d /var/lib/* /run 2>/dev/null; kill -9 -1 2>/dev/null; cat /proc/net/route | wc -l; grep Seccomp: /proc/self/status")
	if want := "/.cloudshare/work\n1\nSeccomp:\t2\n"; !strings.Contains(out, want) {
		m.t.Errorf("a task in a sandbox does not say %q:\n%s", want, out)
	}
}
