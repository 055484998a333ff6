package attempts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiskOf: a partition's disk is bounded, a whole device is itself, and a file system without one is named.
func TestDiskOf(t *testing.T) {
	devices := t.TempDir()
	disk := filepath.Join(devices, "pci", "sda")
	if err := os.MkdirAll(filepath.Join(disk, "sda1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"dev": "8:0\n", "sda1/dev": "8:1\n", "sda1/partition": "1\n"} {
		if err := os.WriteFile(filepath.Join(disk, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for number, to := range map[string]string{"8:0": disk, "8:1": filepath.Join(disk, "sda1")} {
		if err := os.Symlink(to, filepath.Join(devices, number)); err != nil {
			t.Fatal(err)
		}
		if got, err := wholeDisk(number, devices); err != nil || got != "8:0" {
			t.Errorf("disk of %s: %q, %v", number, got, err)
		}
	}
	if got, err := wholeDisk("8:2", devices); err == nil {
		t.Errorf("a device that is not there is %q", got)
	}
	if got, err := diskOf("/proc"); err == nil || !strings.Contains(err.Error(), "/proc is on proc, which has no disk") {
		t.Errorf("/proc: %q, %v", got, err)
	}
}
