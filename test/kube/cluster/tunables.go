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

// tunablesNote of a cluster's folder says what they were, for Close and .ci/sweep.
const tunablesNote = "tunables"

// saveTunables notes what they were before the first kubelet of all clusters there are: one
// that another cluster's kubelet has changed already would be put back as it is now.
func (c *Cluster) saveTunables() error {
	path := c.path(tunablesNote)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	unlock, err := lockFolder(filepath.Dir(c.Dir)) // it has the notes of all clusters
	if err != nil {
		return err
	}
	defer unlock()
	text, err := noted(filepath.Join(filepath.Dir(c.Dir), "cs-kube-*"))
	if err == nil && text == "" {
		text, err = readTunables()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// noted returns what another cluster has noted in one of these folders, "" = none has.
func noted(folders string) (string, error) {
	notes, err := filepath.Glob(filepath.Join(folders, tunablesNote))
	if err != nil {
		return "", err
	}
	for _, n := range notes {
		b, err := os.ReadFile(n)
		if err == nil && len(b) > 0 {
			return string(b), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read another cluster's note: %w", err)
		}
	}
	return "", nil
}

func readTunables() (string, error) {
	var b strings.Builder
	for _, t := range tunables {
		file := filepath.Join("/proc/sys", t)
		value, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("save a kernel's setting: %w", err)
		}
		fmt.Fprintln(&b, file, strings.TrimSpace(string(value)))
	}
	return b.String(), nil
}

// restoreTunables puts them back. Other clusters' kubelets do not mind: they look at
// them when they start.
func (c *Cluster) restoreTunables() error {
	if _, err := os.Stat(c.path(tunablesNote)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := lockFolder(filepath.Dir(c.Dir)) // it has the notes of all clusters
	if err != nil {
		return err
	}
	defer unlock()
	b, err := os.ReadFile(c.path(tunablesNote))
	errs := []error{err}
	for line := range strings.Lines(string(b)) {
		if file, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			errs = append(errs, os.WriteFile(file, []byte(value), 0o600))
		}
	}
	return errors.Join(append(errs, os.Remove(c.path(tunablesNote)))...)
}
