package local

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownMountsVar has the test program run its one test with mounts of its own.
const ownMountsVar = "OWN_MOUNTS"

// withOwnMounts runs the rest of a test in a process whose mounts are nobody else's, and
// reports whether this is that process.
func withOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMountsVar) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMountsVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with mounts of its own: %v\n%s", err, out)
	}
	return false
}

// cover mounts an empty folder on one that every machine has.
func cover(t *testing.T, dir string) {
	t.Helper()
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	if err != nil {
		t.Fatalf("cover %s: %v", dir, err)
	}
}

// put makes a file that the sandbox's user owns.
func (o *opened) put(path string, mode os.FileMode) {
	o.Helper()
	content := []byte("content of " + path + "\n")
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600), os.Chmod(path, mode))
	if os.Getuid() == 0 {
		err = errors.Join(err, os.Chown(path, nobody, nobody))
	}
	if err != nil {
		o.Fatal(err)
	}
}

// TestSecretsInShownFolders: what the configuration names is hidden wherever it lies, and
// so is what only the broker's user may read of the machine's settings: through links, and
// also when files are replaced or made while the sandbox is used.
func TestSecretsInShownFolders(t *testing.T) {
	if !withOwnMounts(t) {
		return
	}
	cover(t, "/opt")
	cover(t, "/etc/opt")
	cfg := config(t)
	cfg.Contain = ContainAll
	cfg.Sandbox.Hide = []string{"/opt/live/key.pem", "/opt/token"}
	o := &opened{T: t}
	for path, mode := range map[string]os.FileMode{
		"/opt/archive/key1.pem": 0o644, "/opt/archive/cert.pem": 0o644, "/opt/token": 0o644, "/opt/tool/run": 0o644,
		"/etc/opt/open/a": 0o644, "/etc/opt/open/key": 0o600, "/etc/opt/own": 0o600,
	} {
		o.put(path, mode)
	}
	if err := errors.Join(os.Mkdir("/opt/live", 0o755), os.Symlink("../archive/key1.pem", "/opt/live/key.pem")); err != nil {
		t.Fatal(err)
	}
	o, _ = adopted(t, cfg)
	list := "find /opt /etc/opt -type f | sort | xargs cat; "
	task := shell(1, "mkfifo go; "+list+"echo first; read again <go; "+list+"echo second")
	o.begin(task)
	rc, err := o.Logs(t.Context(), task.ID, "stdout", true)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	out := bufio.NewScanner(rc)
	shown := func(until string) string {
		var lines []string
		for out.Scan() && out.Text() != until {
			lines = append(lines, strings.TrimPrefix(out.Text(), "content of "))
		}
		return strings.Join(lines, " ")
	}
	const want = "/etc/opt/open/a /opt/archive/cert.pem /opt/tool/run"
	if got := shown("first"); got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	for _, path := range []string{"/opt/archive/key1.pem", "/opt/token", "/etc/opt/own", "/etc/opt/open/key"} {
		o.put(path+".new", 0o644)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	o.put("/opt/archive/key2.pem", 0o644)
	o.put("/etc/opt/later", 0o644)
	if err := os.WriteFile(filepath.Join(o.slotOf(task).dir, "work", "go"), []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := shown("second"); got != want {
		t.Errorf("shown after changes: %q, want %q", got, want)
	}
	o.end(task)
}
