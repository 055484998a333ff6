package membership

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// cuts is a network whose links can be cut.
type cuts struct {
	mu  sync.Mutex
	cut map[[2]netip.AddrPort]bool
}

func newCuts() *cuts { return &cuts{cut: map[[2]netip.AddrPort]bool{}} }

func (c *cuts) set(a, b netip.AddrPort, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[[2]netip.AddrPort{a, b}] = cut
	c.cut[[2]netip.AddrPort{b, a}] = cut
}

func (c *cuts) has(from, to netip.AddrPort) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[[2]netip.AddrPort{from, to}]
}

func (c *cuts) config(cfg *Config) {
	cfg.wrap = func(under memberlist.NodeAwareTransport) memberlist.NodeAwareTransport {
		return &cutTransport{NodeAwareTransport: under, cuts: c, self: under.(*transport).advertise}
	}
}

type cutTransport struct {
	memberlist.NodeAwareTransport
	cuts *cuts
	self netip.AddrPort
}

func (t *cutTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.cuts.has(t.self, addrPort(a.Addr)) {
		return time.Now(), nil
	}
	return t.NodeAwareTransport.WriteToAddress(b, a)
}

func (t *cutTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t.cuts.has(t.self, addrPort(a.Addr)) {
		return nil, errors.New("cut")
	}
	return t.NodeAwareTransport.DialAddressTimeout(a, timeout)
}

// Without rejoining, memberlist keeps both halves apart forever once they have
// found each other dead.
func TestPartitionHeals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		lasting time.Duration // after both sides found the other dead
	}{
		{"as soon as found dead", 0},
		{"longer than memberlist remembers the dead", time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			net := newCuts()
			edit := func(cfg *Config) { net.config(cfg); cfg.timing.deadTime = 400 * time.Millisecond }
			a := open(t, "a", edit)
			b := open(t, "b", edit, a)
			c := open(t, "c", edit, a)
			for _, n := range []*node{a, b, c} {
				n.awaitState("a", Alive)
				n.awaitState("b", Alive)
				n.awaitState("c", Alive)
			}
			net.set(a.Addr(), c.Addr(), true)
			net.set(b.Addr(), c.Addr(), true)
			for _, n := range []*node{a, b} {
				n.awaitState("c", Dead)
				c.awaitState(n.cfg.Site, Dead)
			}
			<-time.After(tc.lasting) // the length of the partition is what is tested

			healed := time.Now()
			net.set(a.Addr(), c.Addr(), false)
			net.set(b.Addr(), c.Addr(), false)
			for _, n := range []*node{a, b} {
				n.awaitState("c", Alive)
				c.awaitState(n.cfg.Site, Alive)
			}
			t.Logf("all see all %v after healing, rejoin every %v", time.Since(healed), a.t.rejoin)
		})
	}
}

// Two of three cannot reach each other, but the third reaches both: nobody
// dies, since probes go around. A death beside which the machine stood still
// says nothing: then it is tried again.
func TestOneCutLinkKillsNobody(t *testing.T) {
	t.Parallel()
	for range 20 {
		late := watchLateness(t)
		died := cutOneLink(t)
		if stood := late.sum(); died == nil || stood < lateEnough {
			if died != nil {
				t.Errorf("somebody thinks %+v; the machine stood still for %v", *died, stood)
			}
			return
		}
	}
	t.Log("the machine stands still too often to tell")
}

// cutOneLink returns whom another one took for dead, nil if nobody did.
func cutOneLink(t *testing.T) *Member {
	t.Helper()
	net := newCuts()
	lan := func(cfg *Config) { net.config(cfg); cfg.timing = nil }
	a := open(t, "a", lan)
	b := open(t, "b", lan, a)
	c := open(t, "c", lan, a)
	for _, n := range []*node{a, b, c} {
		n.awaitState("b", Alive)
		n.awaitState("c", Alive)
	}
	net.set(b.Addr(), c.Addr(), true)
	enough := time.After(8 * b.t.probe)
	for {
		select {
		case ev := <-b.Events():
			if ev.Member.State == Dead {
				return &ev.Member
			}
		case ev := <-c.Events():
			if ev.Member.State == Dead {
				return &ev.Member
			}
		case <-enough:
			return nil
		}
	}
}
