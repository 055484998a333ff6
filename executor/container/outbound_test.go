//go:build container

package container_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestOutbound: a stranger's task that asks has the way to the world, and none to the machine, the engine's network,
// private addresses or IPv6; it has no right to change that. One that does not ask has no network.
func TestOutbound(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "0.0.0.0:0") //nolint:gosec // what listens everywhere must not be reached
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, engines.Start(t, kind))
			cfg.Foreign, cfg.Mounts = executor.NetworkOutbound, nil
			r := open(t, cfg)
			r.capacity(true)
			if got := r.Capacity()[0].Network; got != executor.NetworkOutbound {
				t.Fatalf("offers %s: %s", got, r.Status())
			}
			said := func(script string, asks bool) string {
				t.Helper()
				task := r.shell(script + " 2>&1")
				task.Owner, task.Network = "site-1", asks
				id := r.Begin(task)
				res := r.AwaitEnd(id)
				out := strings.TrimSpace(r.Written(id, "stdout"))
				if res.Cause != executor.Exited {
					t.Fatalf("%s: %+v, %s; %s", script, res, out, r.Status())
				}
				return out
			}
			if got := said("ip route get 198.51.100.1", true); !strings.Contains(got, " via ") {
				t.Errorf("no way to the world: %q", got)
			}
			refused := []string{"10.1.2.3", "192.168.1.1", "169.254.169.254", "$(ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p')"}
			refused = append(refused, own(t)...)
			script := ":"
			for _, a := range refused {
				script += fmt.Sprintf("; nc -w 3 %s %d </dev/null && echo reached %s", a, port, a)
			}
			if got := said("{ "+script+"; }", true); strings.Contains(got, "reached") || strings.Count(got, "unreachable") != len(refused) {
				t.Errorf("of %q: %s", refused, got)
			}
			if got := said("ip rule del prio 100 || echo denied", true); !strings.Contains(got, "denied") {
				t.Errorf("a task changes its rules: %q", got)
			}
			if got := said("ls /sys/class/net", false); got != "lo" {
				t.Errorf("who does not ask has %q", got)
			}
		})
	}
}

// own returns the machine's addresses of IPv4 beyond loopback.
func own(t *testing.T) (list []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			list = append(list, n.IP.String())
		}
	}
	return list
}
