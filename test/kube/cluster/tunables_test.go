//go:build kube

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSettingsComeBack: a cluster that begins beside another notes what the kernel's
// settings were before the first of them, and not what the other's kubelet has made of
// them; so they are back when both have ended, in whatever order.
func TestSettingsComeBack(t *testing.T) {
	dir := t.TempDir()
	begin := func(name string) *Cluster {
		c := &Cluster{Dir: filepath.Join(dir, "cs-kube-"+name), name: name}
		must(t, errors.Join(os.Mkdir(c.Dir, 0o700), c.saveTunables()))
		return c
	}
	first := begin("first")
	setting := filepath.Join(dir, "setting")
	must(t, os.WriteFile(first.path(tunablesNote), []byte(setting+" 0\n"), 0o600)) // and its kubelet sets 1
	second := begin("second")
	must(t, first.restoreTunables())
	third := begin("third")
	for _, c := range []*Cluster{second, third, third} {
		must(t, os.WriteFile(setting, []byte("1"), 0o600))
		want := "0"
		if _, err := os.Stat(c.path(tunablesNote)); err != nil {
			want = "1" // it has ended
		}
		must(t, c.restoreTunables())
		if got, err := os.ReadFile(setting); err != nil || string(got) != want {
			t.Errorf("after the %s the setting is %q, %v; want %s", c.name, got, err, want)
		}
	}
}
