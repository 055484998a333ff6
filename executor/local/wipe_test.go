package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWipingGoesByBatches: what a task has left goes however much it is, but for what is kept.
func TestWipingGoesByBatches(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "kept", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	const files = 5 * 512
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%0200d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "gone"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := wipeFolder(dir, []string{"a/kept"}); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		left = append(left, rel)
		return err
	})
	if want := []string{".", "a", "a/kept", "a/kept/inside"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v; want %v", left, err, want)
	}
}

// TestWipingDropsFlags: synchronous writes that a task has asked for its folder are not the next one's.
func TestWipingDropsFlags(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	had, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, had|flagSync|flagNoAtime) != nil {
		return // this file system has none
	}
	if err = wipeFolder(dir, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS); err != nil || got != had {
		t.Errorf("flags %#x, %v; want %#x", got, err, had)
	}
}
