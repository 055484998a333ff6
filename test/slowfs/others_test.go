//go:build fuse

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOtherUsers: who is not root gets what modes allow, as on any disk. Sandboxes of
// root's broker have another user.
func TestOtherUsers(t *testing.T) {
	at, err := os.MkdirTemp("", "slowfs") //nolint:usetesting // t.TempDir is inside a folder of root's only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(at) })
	folder := t.TempDir()
	server, err := mount(delay{filepath.Join(t.TempDir(), "delay")}, folder, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err = server.Unmount(); err != nil {
			t.Error(err)
		}
	}()
	for name, mode := range map[string]os.FileMode{"open": 0o644, "closed": 0o600} {
		if err = os.WriteFile(filepath.Join(folder, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		read := exec.Command("cat", filepath.Join(at, name))
		read.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := read.CombinedOutput(); (err == nil) != (name == "open") {
			t.Errorf("read %s, of mode %o, as another user: %v: %s", name, mode, err, out)
		}
	}
}
