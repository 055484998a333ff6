package box

import (
	"net/netip"
	"os"
	"testing"
)

// TestNetworkWords: what a keeper is told and tells arrives as it was; what it has half written is nothing yet.
func TestNetworkWords(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::1")
	if got := NetworkArgument([]netip.Addr{a, b}, []netip.Addr{a}); got != "192.0.2.7,2001:db8::1/192.0.2.7" {
		t.Error(got)
	}
	if got := addresses("192.0.2.7,2001:db8::1,"); len(got) != 2 || got[0] != a || got[1] != b {
		t.Error(got)
	}
	got := nameServers("# nameserver 9.9.9.9\nnameserver 127.0.0.53\nsearch x\nnameserver 192.0.2.7\nnameserver\nnameserver x")
	if len(got) != 1 || got[0] != a {
		t.Error(got)
	}
	dir := t.TempDir()
	if err := MakeNetworkFile(dir); err != nil {
		t.Fatal(err)
	}
	path, _ := NetworkPath(dir)
	for text, want := range map[string]struct{ ready, failed bool }{
		"": {}, "ready": {}, "rea": {}, networkReady: {ready: true}, "no rules\n": {failed: true},
	} {
		if err := os.WriteFile(path, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if ready, err := HearNetwork(dir); ready != want.ready || (err != nil) != want.failed {
			t.Errorf("%q: %t, %v", text, ready, err)
		}
	}
}
