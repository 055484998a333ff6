package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

func good(t *testing.T) Config {
	t.Helper()
	return Config{Keeping: attempts.Keeping{Dir: filepath.Join(t.TempDir(), "kube"), Site: "site-1"}, Cluster: kubeconfig(t, "https://127.0.0.1:1")}
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\n" +
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u, namespace: lent}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfig: what cannot work is said before anything is done.
func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"cluster is empty":         func(c *Config) { c.Cluster = "" },
		"dir is empty":             func(c *Config) { c.Dir = "" },
		"only a kubeconfig":        func(c *Config) { c.Cluster, c.Context = InCluster, "x" },
		"threshold is 101%":        func(c *Config) { c.Threshold = 101 },
		"scratch":                  func(c *Config) { c.ScratchMiB = -1 },
		"pull \"sometimes\"":       func(c *Config) { c.PullPolicy = "sometimes" },
		"namespace \"A b\"":        func(c *Config) { c.Namespace = "A b" },
		"service account":          func(c *Config) { c.ServiceAccount = "../x" },
		"pull secret":              func(c *Config) { c.PullSecrets = []string{""} },
		"node_selector \"pool\"":   func(c *Config) { c.NodeSelector = []string{"pool"} },
		"node_labels has 17":       func(c *Config) { c.NodeLabels = make([]string, 17) },
		"node_labels \"a b\"":      func(c *Config) { c.NodeLabels = []string{"a b"} },
		"of that name already":     func(c *Config) { c.NodeLabels = []string{"site"} },
		"is there twice":           func(c *Config) { c.NodeLabels = []string{"a", "a"} },
		"has 138 bytes":            func(c *Config) { c.NodeLabels = []string{strings.Repeat("a.", 64) + "example/xy"} },
		"tolerations \"a:Never\"":  func(c *Config) { c.Tolerations = []string{"a:Never"} },
		"mount \"data:/data\"":     func(c *Config) { c.Mounts = []string{"data:/data"} },
		"user \"root\"":            func(c *Config) { c.User = "root" },
		"gpu \"a b\"":              func(c *Config) { c.GPUResource = "a b" },
		"image pattern":            func(c *Config) { c.Images = attempts.Images{"a b"} },
		"start limit":              func(c *Config) { c.StartLimit = -time.Second },
		"control lag":              func(c *Config) { c.ControlLag, c.CallTimeout = 3*time.Second, 2*time.Second },
		"at most 100":              func(c *Config) { c.Mounts = make([]string, 101) },
		"belong together":          func(c *Config) { c.Watchdog.Image = "a" },
		"watchdog.image \"A b\"":   func(c *Config) { c.Watchdog = Watchdog{"A b", "127.0.0.1:1", "http://a:1"} },
		"watchdog.listen \"7703\"": func(c *Config) { c.Watchdog = Watchdog{"a", "7703", "http://a:1"} },
		"watchdog.url \"a:1\"":     func(c *Config) { c.Watchdog = Watchdog{"a", "127.0.0.1:1", "a:1"} },
	} {
		c := good(t)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := good(t).Validate(); err != nil {
		t.Error(err)
	}
	absent := good(t)
	absent.Cluster = "/no/such/file"
	if _, err := Open(absent); err == nil || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("got %v, want the missing kubeconfig", err)
	}
}

// TestNobodyThere: without a cluster the handler opens, adopts nothing, offers
// nothing, says why, and leaves no goroutine behind.
func TestNobodyThere(t *testing.T) {
	// HTTP/2 connections of client-go's cache end by themselves, later.
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cfg := good(t)
	h, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Open(cfg); !errors.Is(err, attempts.ErrInUse) {
		t.Errorf("twice: got %v, want ErrInUse", err)
	}
	if err = h.Start(t.Context(), executor.Task{ID: executor.ID{Job: "site-1.1"}}); !errors.Is(err, attempts.ErrNotAdopted) {
		t.Errorf("got %v, want ErrNotAdopted", err)
	}
	states, err := h.Adopt(t.Context())
	if err != nil || len(states) > 0 || len(h.Capacity()) > 0 || !strings.Contains(h.Status(), "connection refused") {
		t.Errorf("got %v, %v, %v, %s", states, err, h.Capacity(), h.Status())
	}
	if err = h.Start(t.Context(), executor.Task{ID: executor.ID{Job: "site-1.1"}, Image: "a"}); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	for range 2 {
		if err = h.Close(); err != nil {
			t.Error(err)
		}
	}
}
