package outward

import (
	"net/netip"
	"testing"
)

// TestPublic: what only some reach is not the public's, in whatever text.
func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "172.32.0.1": true, "100.128.0.1": true,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "127.9.9.9": false,
		"0.0.0.0": false, "0.1.2.3": false, "100.64.0.1": false, "169.254.169.254": false, "224.0.0.1": false,
		"255.255.255.255": false, "198.18.0.1": false, "::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fc00::1": false, "fd12::1": false, "ff02::1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": false,
		"64:ff9b::a00:1": false, "64:ff9b:1::1": false, "2002:a00:1::": false, "2001::1": false, "2001:db8::1": false,
		"::10.0.0.1": false, "fec0::1": false, "2606:4700::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %t", addr, got)
		}
	}
}
