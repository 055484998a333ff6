package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// TestContainerConfig: what cannot work is refused before anything starts, and
// the machine is divided so that no core is in both parts.
func TestContainerConfig(t *testing.T) {
	good := Default()
	good.Site, good.Container.Engine, good.Cores, good.Container.Cores = "a", "unix:///var/run/docker.sock", 2, 1
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	all := len(attempts.AllowedCPUs())
	for want, change := range map[string]func(*Config){
		"container.cores is 0":  func(c *Config) { c.Container.Cores = 0 },
		"container.cores -1":    func(c *Config) { c.Container.Cores = -1 },
		"none would be left":    func(c *Config) { c.Cores, c.Container.Cores = 0, all },
		"nothing could run":     func(c *Config) { c.Commands, c.Container.Engine = false, "" },
		"must be unix:///path":  func(c *Config) { c.Container.Engine = "tcp://10.0.0.1:2375" },
		"container.memory":      func(c *Config) { c.Container.Memory = "much" },
		"pull \"always\"":       func(c *Config) { c.Container.Pull = "always" },
		"mount \"here\"":        func(c *Config) { c.Container.Mounts = []string{"here"} },
		"mount \"/a:/b:rw\"":    func(c *Config) { c.Container.Mounts = []string{"/a:/b:rw"} },
		"image pattern \"a b\"": func(c *Config) { c.Container.Images = []string{"a b"} },
		"pids is 3":             func(c *Config) { c.Container.Pids = 3 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	good.Commands, good.Container.Cores, good.Pin = false, 0, true
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if c := good.ForContainer(""); c.Cores != all || len(c.CPUs) != all {
		t.Errorf("without commands containers have %d cores, CPUs %v; want all %d", c.Cores, c.CPUs, all)
	}
}

// TestIfEmpty: the same command line founds, and goes on.
func TestIfEmpty(t *testing.T) {
	c := Default()
	c.DataDir, c.Bootstrap, c.IfEmpty = t.TempDir(), true, true
	if got, err := c.Settled(); err != nil || !got.Bootstrap || c.CheckFounding() != nil {
		t.Errorf("on empty data: %v, bootstrap %v", err, got.Bootstrap)
	}
	dir := filepath.Join(c.DataDir, RaftDir)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "member.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Settled(); err != nil || got.Bootstrap || c.CheckFounding() != nil {
		t.Errorf("on data: %v, bootstrap %v", err, got.Bootstrap)
	}
	if c.IfEmpty = false; c.CheckFounding() == nil {
		t.Error("founded over data without being told that this is meant")
	}
}
