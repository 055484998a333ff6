package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tunables are what every kubelet sets for the whole machine; it cannot be told to
// leave them as they are.
var tunables = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// saveTunables notes what they were before the first kubelet, for Close and .ci/sweep.
func (c *Cluster) saveTunables() error {
	path := c.path("tunables")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	var b strings.Builder
	for _, t := range tunables {
		file := filepath.Join("/proc/sys", t)
		value, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("save a kernel's setting: %w", err)
		}
		fmt.Fprintln(&b, file, strings.TrimSpace(string(value)))
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func (c *Cluster) restoreTunables() error {
	b, err := os.ReadFile(c.path("tunables"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for line := range strings.Lines(string(b)) {
		if file, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			errs = append(errs, os.WriteFile(file, []byte(value), 0o600))
		}
	}
	return errors.Join(errs...)
}
