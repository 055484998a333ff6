package attempts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// asideOf is one with a log to look at.
func asideOf(t *testing.T) (*Aside, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return NewAside(Keeping{Dir: t.TempDir(), Logger: zerolog.New(log)}), log
}

// TestAsideIsBounded: of what is put aside only the latest stays, and that not forever.
func TestAsideIsBounded(t *testing.T) {
	a, _ := asideOf(t)
	for i := range maxAside + 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("bad%d", i))
		if err := os.MkdirAll(filepath.Join(path, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		a.Put(path, os.ErrInvalid)
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%s is still there", path)
		}
	}
	kept := a.list()
	if len(kept) != maxAside || !strings.HasSuffix(kept[0], "-bad3") {
		t.Errorf("kept %d, the oldest %s", len(kept), kept[0])
	}
	a.sweep(time.Now().Add(-time.Hour), nil)
	if n := len(a.list()); n != maxAside {
		t.Errorf("%d are left, and none is old enough", n)
	}
	a.sweep(time.Now(), nil)
	if left := a.list(); len(left) != 0 {
		t.Errorf("left after their time: %v", left)
	}
}

// TestAsideOfAMountPoint: what cannot be moved stays, and the log says what to do.
func TestAsideOfAMountPoint(t *testing.T) {
	a, log := asideOf(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Logf("nothing can be mounted here: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	a.Put(dir, os.ErrInvalid)
	if !strings.Contains(log.String(), "remove it by hand") || !strings.Contains(log.String(), dir) {
		t.Errorf("the log says %s", log)
	}
}

// TestAsideFolder: a file that stands where a folder must be is put aside.
func TestAsideFolder(t *testing.T) {
	a, log := asideOf(t)
	path := filepath.Join(t.TempDir(), "slots")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Folder(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.list()) != 1 || !strings.Contains(log.String(), path) {
		t.Errorf("put aside: %v; the log: %s", a.list(), log)
	}
}
