//go:build guest

// Package guest boots a machine of QEMU, in software, whose cgroups are all of v2, and
// runs tests of executor/local and executor/container in it: most machines on which this
// project is built have no such cgroups to give away. It imports nothing of the project.
package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bootBound returns how long a guest may take for all: in software, beside other tests.
func bootBound() time.Duration {
	if together() != "" { // the short form
		return 25 * time.Minute
	}
	return 90 * time.Minute
}

// TestCgroupLimits: what holds a task holds it on a real cgroup v2, in a sandbox and
// outside, whether the broker is root or not.
func TestCgroupLimits(t *testing.T) {
	tests := os.Getenv("CLOUDSHARE_GUEST_TESTS")
	if tests == "" {
		t.Fatal("CLOUDSHARE_GUEST_TESTS names no tests: run make test-cgroup")
	}
	said := boot(t, machine{tests: tests, program: build(t, "../../executor/local"), words: together()})
	for _, user := range []string{"plain", "root"} {
		t.Run(user, func(t *testing.T) { judge(t, said, user) })
	}
}

// TestContainerLimits: what holds a container holds it on a real cgroup v2, with a broker that is root.
func TestContainerLimits(t *testing.T) {
	tests := os.Getenv("CLOUDSHARE_GUEST_CONTAINERS")
	if tests == "" {
		t.Fatal("CLOUDSHARE_GUEST_CONTAINERS names no tests: run make test-cgroup-long")
	}
	said := boot(t, machine{
		tests: tests, program: build(t, "../../executor/container", "-tags", "container"), files: engines(t), words: "engines=1",
	})
	judge(t, said, "root")
}

// judge fails as the tests of one user did; ones that were left out, or did not run, are failures.
func judge(t *testing.T, said, user string) {
	_, part, found := strings.Cut(said, "GUEST BEGINS "+user+"\n")
	part, end, ended := strings.Cut(part, "GUEST ENDED "+user+" ")
	switch {
	case !found:
		t.Fatalf("the guest did not come to this user's tests; it said:\n%s", said)
	case !ended || !strings.HasPrefix(end, "0\n"):
		t.Errorf("failed:\n%s", part)
	case strings.Contains(part, "--- SKIP") || !passed.MatchString(part):
		t.Errorf("tests were left out:\n%s", part)
	}
	t.Log(strings.Join(passed.FindAllString(part, -1), "\n"))
}

var passed = regexp.MustCompile(`(?m)^ *--- PASS: .*$`)

// machine is a guest that runs tests and ends.
type machine struct {
	tests   string // which ones, of the program
	program string // that has the tests and needs nothing of the guest
	files   string // a folder that is to be on its disk, "" = none
	words   string // for its init, as NAME=VALUE
}

// boot runs a guest to its end and returns what its console showed.
func boot(t *testing.T, m machine) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "initramfs")
	if err := os.WriteFile(image, initramfs(t, m.tests, program("busybox", t), m.program), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk")
	makeDisk(t, disk, m.files)
	said, err := run(t, m, image, disk)
	if errors.Is(err, errStalled) { // also one with tests that hang beats on
		t.Logf("%v; it is booted once more; it said:\n%s", err, said)
		makeDisk(t, disk, m.files)
		said, err = run(t, m, image, disk)
	}
	if err != nil {
		t.Fatalf("guest: %v; it said:\n%s", err, said)
	}
	return said
}

// errStalled is a machine whose clock stopped, which QEMU's software processors rarely do on busy hosts:
// not even the guest's timers of a test or its kernel's watchdog fire then.
var errStalled = fmt.Errorf("the guest was silent for %v", stallBound)

// run is one run of a machine, to its end.
func run(t *testing.T, m machine, image, disk string) (string, error) {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), bootBound())
	defer cancel()
	ctx, stop := context.WithCancelCause(bounded)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, program("qemu-system-x86_64", t),
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-drive", "if=none,id=disk,format=raw,cache=unsafe,file="+disk, "-device", "nvme,drive=disk,serial=disk",
		"-kernel", os.Getenv("CLOUDSHARE_GUEST_KERNEL"), "-initrd", image,
		"-append", "console=ttyS0 panic=-1 loglevel=2 cgroup_no_v1=all mitigations=off "+m.words)
	said := &screen{last: time.Now()}
	cmd.Stdout = said
	if testing.Verbose() { // as it comes
		cmd.Stdout = io.MultiWriter(said, os.Stderr)
	}
	cmd.Stderr = cmd.Stdout
	go said.watch(ctx, stop)
	if err := cmd.Run(); err != nil {
		return said.text(), errors.Join(err, context.Cause(ctx))
	}
	return said.text(), nil
}

// together has a guest run the tests of both users at the same time, if that is asked for: suites are too much.
func together() string {
	if os.Getenv("CLOUDSHARE_GUEST_TOGETHER") == "" {
		return ""
	}
	return "together=1"
}

// build returns the tests of a package as a program that needs nothing of the guest.
func build(t *testing.T, of string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "guest.test")
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"test", "-c", "-o", binary}, flags...), of)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the tests: %v\n%s", err, out)
	}
	return binary
}

// program finds one of this machine's.
func program(name string, t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
