package config

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTermsOfHandlers: labels of the site hold for every handler, a handler's own
// win; os and arch are those of the machine where the broker itself runs tasks.
func TestTermsOfHandlers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "site: a\nlabels: [rack=r7, gpu=none]\nhandlers:\n  container:\n    labels: [gpu=a100]\n    tasks: 4\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--handlers-local-labels", "arch=old,disk=ssd"}); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path, flags, func() []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]string{
		"local":     {"os": runtime.GOOS, "arch": "old", "rack": "r7", "gpu": "none", "disk": "ssd"},
		"container": {"os": runtime.GOOS, "arch": runtime.GOARCH, "rack": "r7", "gpu": "a100"},
		"kube":      {"rack": "r7", "gpu": "none"},
	} {
		if got := cfg.Terms()[name].Labels; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := cfg.Terms()["container"].Tasks; got != 4 {
		t.Errorf("%d tasks", got)
	}
}

func TestTermsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`labels: "rack"`:                     func(c *Config) { c.Labels = []string{"rack"} },
		"label site is implied":              func(c *Config) { c.Labels = []string{"site=b"} },
		"handlers.kube.labels":               func(c *Config) { c.Handlers.Kube.Labels = []string{"a=b=c"} },
		"handlers.local: tasks -1":           func(c *Config) { c.Handlers.Local.Tasks = -1 },
		"handlers.container.labels: \"x=1\"": func(c *Config) { c.Handlers.Container.Labels = []string{"x=1", "x=1"} },
	} {
		cfg := Default()
		cfg.Site = "a"
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
