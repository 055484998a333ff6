package membership

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// TestNameThatIsFoundLater: a site whose own name nobody knows starts, says so, and is
// seen as soon as the name is known. It used to end.
func TestNameThatIsFoundLater(t *testing.T) {
	a := open(t, "a", nil)
	var known atomic.Bool
	bound := freePort(t)
	b := open(t, "b", func(c *Config) {
		c.Listen, c.Advertise = "127.0.0.1:"+bound, "b.example:"+bound
		c.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host != "b.example" || !known.Load() {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.IPv6Unspecified(), netip.MustParseAddr("127.0.0.1")}, nil
		}
	}, a)
	b.log.await(t, "correct `advertise`")
	if b.Addr().IsValid() || len(b.Members()) != 0 {
		t.Errorf("b is at %s, and sees %v", b.Addr(), b.Members())
	}
	if err := b.UpdateIncarnation(7); err != nil {
		t.Error(err)
	}
	known.Store(true)
	a.await("b", func(m Member) bool { return m.State == Alive && m.Incarnation == 7 })
	if want := "127.0.0.1:" + bound; b.Addr().String() != want {
		t.Errorf("b is at %s, want %s", b.Addr(), want)
	}
}

// TestNameThatIsNeverFound: such a site leaves and closes like any other.
func TestNameThatIsNeverFound(t *testing.T) {
	a := open(t, "a", func(c *Config) {
		c.Advertise = "a.example:1"
		c.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.IPv4Unspecified()},
				nil
		}
	})
	a.log.await(t, "it means no host's own address")
	if err := a.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// freePort is one that nobody else takes, neither now nor while a site that had it is away.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := ensemble.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// TestMisdialed: who takes the port for another one is told at once.
func TestMisdialed(t *testing.T) {
	a := open(t, "a", func(c *Config) {
		c.Misdialed = func(first [4]byte) []byte {
			if string(first[:]) != "PEER" {
				return nil
			}
			return []byte("not here")
		}
	})
	conn, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = conn.Write(bytes.Repeat([]byte("PEER"), 20)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 8)
	if _, err = io.ReadFull(conn, answer); err != nil || string(answer) != "not here" {
		t.Errorf("%q, %v", answer, err)
	}
	a.log.await(t, "takes this gossip port for a peer port")
}
