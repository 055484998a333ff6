//go:build operators

package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// prefix of the namespaces' names; the number of the process that made them follows.
const prefix = "cs-op-"

// network names the namespace in which the switch is.
const network = "net"

// machines makes a machine for each site, all on one switch, until the test ends.
func machines(t *testing.T, sites ...string) []*operator {
	t.Helper()
	sweep(t)
	namespace(t, network)
	ip(t, "-n", host(network), "link", "add", "name", "switch", "type", "bridge")
	ip(t, "-n", host(network), "link", "set", "dev", "switch", "up")
	program, err := filepath.Abs("../../bin")
	if err == nil {
		_, err = os.Stat(filepath.Join(program, "cloudshare"))
	}
	if err != nil {
		t.Fatalf("the program is not built (make build): %v", err)
	}
	var out []*operator
	for i, site := range sites {
		o := &operator{T: t, site: site, addr: fmt.Sprint("10.78.0.", i+1), dir: t.TempDir(), path: program}
		plug(t, site, o.addr)
		o.configure()
		out = append(out, o)
	}
	return out
}

// plug makes a site's machine and connects it.
func plug(t *testing.T, site, addr string) {
	t.Helper()
	namespace(t, site)
	ip(t, "-n", host(site), "link", "add", "name", "eth0", "type", "veth", "peer", "name", site, "netns", host(network))
	ip(t, "-n", host(network), "link", "set", "dev", site, "up", "master", "switch")
	ip(t, "-n", host(site), "address", "add", addr+"/24", "dev", "eth0")
	ip(t, "-n", host(site), "link", "set", "dev", "lo", "up")
	ip(t, "-n", host(site), "link", "set", "dev", "eth0", "up")
}

// host is the namespace of a name.
func host(name string) string { return prefix + strconv.Itoa(os.Getpid()) + "-" + name }

func namespace(t *testing.T, name string) {
	t.Helper()
	ip(t, "netns", "add", host(name))
	t.Cleanup(func() { ip(t, "netns", "delete", host(name)) })
}

// sweep removes what runs that were killed have left.
func sweep(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(ip(t, "netns", "list")) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, ours := strings.CutPrefix(name, prefix)
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := os.Stat("/proc/" + pid); ours && errors.Is(err, fs.ErrNotExist) {
			ip(t, "netns", "delete", name)
		}
	}
}

// ip runs a command of iproute2.
func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
