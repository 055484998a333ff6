//go:build fuse

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSyncs mounts a folder and syncs a file in each way that a broker does, fast,
// slowly and fast again.
func TestSyncs(t *testing.T) {
	folder, at := t.TempDir(), t.TempDir()
	d := delay{filepath.Join(t.TempDir(), "delay")}
	server, err := mount(d, folder, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err = server.Unmount(); err != nil {
			t.Error(err)
		}
	}()
	f, err := os.OpenFile(filepath.Join(at, "file"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = f.WriteString("synced"); err != nil {
		t.Fatal(err)
	}
	const slow = 200 * time.Millisecond
	for _, x := range []struct {
		say   string
		least time.Duration
	}{{"", 0}, {"200ms", slow}, {"nonsense", 0}, {"0", 0}} {
		if err = os.WriteFile(d.path, []byte(x.say+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, sync := range map[string]func() error{
			"fsync":     f.Sync,
			"fdatasync": func() error { return unix.Fdatasync(int(f.Fd())) },
		} {
			began := time.Now()
			if err = retry(sync); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if took := time.Since(began); took < x.least {
				t.Errorf("%s took %v at a delay of %q", name, took, x.say)
			}
		}
	}
	if got, err := os.ReadFile(filepath.Join(folder, "file")); err != nil || string(got) != "synced" {
		t.Errorf("behind the mount point the file holds %q, %v", got, err)
	}
}

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
