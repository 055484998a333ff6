package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/notices"
)

// TestNotify: what is wrong with who may be told is said when the broker starts, and before.
func TestNotify(t *testing.T) {
	long := strings.Repeat("x", notices.MinSecret)
	for why, change := range map[string]func(*NotifyConfig){
		"notify.secret is missing":       func(n *NotifyConfig) { n.To = []string{"a.example"} },
		`notify.to "https://a": write`:   func(n *NotifyConfig) { n.To, n.Secret = []string{"https://a"}, long },
		`notify.to "": write HOST`:       func(n *NotifyConfig) { n.To, n.Secret = []string{""}, long },
		`notify.to "u@a": write HOST`:    func(n *NotifyConfig) { n.To, n.Secret = []string{"u@a"}, long },
		"notify.secret: must have 24":    func(n *NotifyConfig) { n.Secret = long[1:] },
		"notify.give_up 1s: must be":     func(n *NotifyConfig) { n.GiveUp = 1e9 },
		"notify.give_up 169h0m0s: must ": func(n *NotifyConfig) { n.GiveUp = 169 * 3600e9 },
	} {
		c := Default()
		c.Site = "a"
		change(&c.Notify)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Site, c.Notify.To, c.Notify.Secret = "a", []string{"a.example:8443"}, "@"+path
	if got, err := c.ForNotices(); err != nil || string(got.Secret) != long || got.Hosts[0] != "a.example:8443" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if list := strings.Join(c.secrets(), " "); !strings.Contains(list, path) {
		t.Errorf("tasks may read the secret: hidden are %s", list)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ForNotices(); err == nil || !strings.Contains(err.Error(), "24 bytes") {
		t.Errorf("a short one in a file: %v", err)
	}
}
