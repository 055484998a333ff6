package local

import (
	"net"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// TestNetworksOfTasks: who has the machine's network, and what is said and offered.
func TestNetworksOfTasks(t *testing.T) {
	const world, machines = executor.NetworkOutbound, executor.NetworkHost
	for _, c := range []struct {
		whom    Whom
		foreign executor.Network
		offers  executor.Network
		status  string
		// strangers, own: what their tasks have that ask for a network.
		strangers, own kind
	}{
		{ContainNobody, executor.NetworkNone, executor.NetworkHost, "NOT contained", kind{}, kind{}},
		{ContainForeign, executor.NetworkNone, executor.NetworkNone, "sandboxes, without a network", kind{contained: true}, kind{}},
		{ContainForeign, executor.NetworkOutbound, executor.NetworkOutbound, "with the world, but no private address", kind{true, world}, kind{}},
		{ContainForeign, executor.NetworkHost, executor.NetworkHost, "this machine's network if their jobs ask", kind{true, machines}, kind{}},
		{ContainAll, executor.NetworkNone, executor.NetworkNone, "all tasks run in sandboxes, other sites' without a network", kind{contained: true}, kind{true, machines}},
	} {
		h := &Handler{cfg: Config{Foreign: c.foreign}, contain: containment{whom: c.whom, foreign: c.foreign}}
		h.cfg.Site = "site-2"
		asks, quiet := executor.Task{Owner: "site-1", Network: true}, executor.Task{Owner: "site-1"}
		if got := h.kindFor(asks); got != c.strangers {
			t.Errorf("%v, %s: strangers that ask get %+v", c.whom, c.foreign, got)
		}
		if got := h.kindFor(quiet); got.network != executor.NetworkNone {
			t.Errorf("%v, %s: strangers that do not ask have one", c.whom, c.foreign)
		}
		asks.Owner = "site-2"
		if got := h.kindFor(asks); got != c.own {
			t.Errorf("%v, %s: own tasks get %+v", c.whom, c.foreign, got)
		}
		if got := h.Capacity()[0].Network; got != c.offers {
			t.Errorf("%v, %s: offers %s", c.whom, c.foreign, got)
		}
		if got := h.contain.status(0); !strings.Contains(got, c.status) {
			t.Errorf("%v, %s: %q, want %q", c.whom, c.foreign, got, c.status)
		}
	}
}

// TestNetworkOfSandboxes: a stranger's task that asks sees the machine's interfaces, if the site gives them; one that
// does not ask sees its own loopback alone, in another sandbox of the same owner.
func TestNetworkOfSandboxes(t *testing.T) {
	cfg := config(t)
	cfg.Contain, cfg.Foreign = ContainForeign, executor.NetworkHost
	o, _ := adopted(t, cfg)
	for n, network := range []bool{false, true, false} {
		// The first two lines of the list are its head; its third is loopback's.
		task := shell(uint32(n+1), "test $(wc -l </proc/net/dev) = 3 && exit 3; exit 4")
		task.Owner, task.Network = "site-1", network
		want := map[bool]int{false: 3, true: 4}[network]
		if !network || machineHasMore(t) {
			if r := o.run(task); r.Cause != executor.Exited || r.ExitCode != want {
				t.Errorf("network %t: got %+v, want code %d", network, r, want)
			}
		}
	}
}

// machineHasMore reports whether the machine has an interface besides loopback.
func machineHasMore(t *testing.T) bool {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return len(list) > 1
}
