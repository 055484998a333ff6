package zk

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestNameOfTwoAddresses: a server's name that means two addresses is dialed at the one
// and the other in turn, so that the first cannot keep a member from the second by taking
// its connections; where nobody listens, the other one is taken at once.
func TestNameOfTwoAddresses(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, port, _ := net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	known := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.2")}
	d := &dialer{most: time.Second, lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "zk.lan" {
			return nil, errors.New("no such host")
		}
		return known, nil
	}}
	dial := func(addr string) string {
		t.Helper()
		conn, err := d.open("", addr, 10*time.Second)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.RemoteAddr().String()
	}
	got := []string{dial("zk.lan:" + port), dial("zk.lan:" + port), dial("zk.lan:" + port)}
	if want := first.Addr().String() + " 127.0.0.2:" + port + " " + first.Addr().String(); strings.Join(got, " ") != want {
		t.Errorf("dialed %s, want %s", got, want)
	}
	_ = second.Close()
	for range 2 {
		if got := dial("zk.lan:" + port); got != first.Addr().String() {
			t.Errorf("with one of them closed: %s", got)
		}
	}
	known = nil
	for _, addr := range []string{"zk.lan:" + port, "nowhere.lan:1"} {
		if got := dial(addr); !strings.Contains(got, "look up "+addr[:strings.IndexByte(addr, ':')]) || d.lastError() == nil {
			t.Errorf("%s: %s, %v", addr, got, d.lastError())
		}
	}
}
