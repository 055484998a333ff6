package container

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
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
		{"none", executor.NetworkOutbound, "container:cloudshare-h-x-network", executor.NetworkOutbound, "reach the world, but no private address"},
	} {
		cfg := Config{Network: c.own, Foreign: c.foreign}
		cfg.Site = "site-2"
		m := template{cfg: &cfg, home: "h"}
		networkOf := func(t executor.Task) string {
			w := &work{Attempt: attempts.NewAttempt(t)}
			w.Name = "x"
			return m.networkOf(w)
		}
		stranger := executor.Task{Owner: "site-1"}
		if got := networkOf(stranger); got != "none" {
			t.Errorf("%+v: who does not ask gets %q", c, got)
		}
		stranger.Network = true
		if got := networkOf(stranger); got != c.asks {
			t.Errorf("%+v: who asks gets %q", c, got)
		}
		for _, asks := range []bool{false, true} {
			if got := networkOf(executor.Task{Owner: "site-2", Network: asks}); got != c.own {
				t.Errorf("%+v: own tasks get %q", c, got)
			}
		}
		if got := (&presence{}).network(&cfg); got != c.offers {
			t.Errorf("%+v: offers %s", c, got)
		}
		if got := (&presence{}).networkStatus(&cfg); !strings.Contains(got, c.status) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
