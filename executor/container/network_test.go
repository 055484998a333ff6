package container

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// TestNetworksOfTasks: strangers have no network unless they ask and the site gives one; its own have its
// configuration's.
func TestNetworksOfTasks(t *testing.T) {
	for _, c := range []struct {
		own     string // the configuration's
		foreign executor.Network
		asks    string // what strangers get that ask
		offers  executor.Network
		status  string
	}{
		{"", executor.NetworkNone, "none", executor.NetworkNone, "have no network"},
		{"lab", executor.NetworkHost, "lab", executor.NetworkHost, "the network of this site's"},
		{"", executor.NetworkHost, "", executor.NetworkHost, "the network of this site's"},
		{"none", executor.NetworkHost, "none", executor.NetworkNone, "have no network"},
		{"lab", executor.NetworkOutbound, "none", executor.NetworkNone, "outbound is not made for containers"},
	} {
		cfg := Config{Network: c.own, Foreign: c.foreign}
		cfg.Site = "site-2"
		stranger := executor.Task{Owner: "site-1"}
		if got := cfg.networkOf(stranger); got != "none" {
			t.Errorf("%+v: who does not ask gets %q", c, got)
		}
		stranger.Network = true
		if got := cfg.networkOf(stranger); got != c.asks {
			t.Errorf("%+v: who asks gets %q", c, got)
		}
		for _, asks := range []bool{false, true} {
			if got := cfg.networkOf(executor.Task{Owner: "site-2", Network: asks}); got != c.own {
				t.Errorf("%+v: own tasks get %q", c, got)
			}
		}
		if got := cfg.network(); got != c.offers {
			t.Errorf("%+v: offers %s", c, got)
		}
		if got := cfg.networkStatus(); !strings.Contains(got, c.status) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
