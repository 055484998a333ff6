package outbound

import (
	"net"
	"net/netip"
	"testing"
)

// TestPublic: what is private, a group's, of IPv6 or this machine's is not reached, whatever way there is to it.
func TestPublic(t *testing.T) {
	list := []string{
		"0.0.0.0", "0.1.2.3", "10.0.2.2", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.168.255.255", "224.0.0.1", "239.255.255.255",
		"198.18.0.1", "198.19.255.255", "168.63.129.16", "240.0.0.1", "255.255.255.255", "::1", "fe80::1", "fc00::1", "2001:db8::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		list = append(list, netip.MustParsePrefix(a.String()).Addr().String())
	}
	for _, a := range list {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s is reached", a)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is reached")
	}
}
