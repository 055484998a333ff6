package raftlog

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// answering accepts connections, answers each with these bytes, and holds it.
func answering(t *testing.T, addr string, answer []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = conn.Write(answer)
		}
	}()
	return ln.Addr().String()
}

// joinUntil joins through addr until ctx's time is over, and returns why not.
func (c *cluster) joinUntil(t *testing.T, addr string, limit time.Duration, change func(*Config)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cfg := c.config("z", coordtest.NewMachine())
	cfg.Bootstrap, cfg.Federation, cfg.Join = false, [16]byte{}, []string{addr}
	change(&cfg)
	l, err := Open(ctx, cfg)
	if err == nil {
		t.Fatal("joined", l.Close())
	}
	return err
}

// TestJoinSaysWhoAnswers: whoever answers in place of a peer port is named, with what
// to write instead. Another port of a broker ends the join at once: it never works.
func TestJoinSaysWhoAnswers(t *testing.T) {
	c := newCluster(t)
	gossip := relay.Misdialed("the gossip port of site a")([4]byte{'C', 'S', 'H', 'R'})
	for name, tc := range map[string]struct {
		answer []byte
		within time.Duration // an answer that comes is there long before
		want   string
		final  bool
	}{
		"another port": {gossip, time.Second, "that is no peer port, but the gossip port of site a: give that broker's peer address", true},
		"HTTP":         {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), time.Second, "HTTP is spoken there: give the broker's peer address", false},
		"silence":      {nil, 100 * time.Millisecond, "it takes connections and says nothing: the broker there hangs, or it is no peer port", false},
	} {
		err := c.joinUntil(t, answering(t, "127.0.0.1:0", tc.answer), 3*time.Second, func(cfg *Config) {
			cfg.timing.rpc, cfg.timing.enqueue = tc.within, tc.within
		})
		if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") ||
			errors.Is(err, relay.ErrNoPeerPort) != tc.final || errors.Is(err, context.DeadlineExceeded) == tc.final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJoinAtItself: a name that turns out to mean this broker is told so.
func TestJoinAtItself(t *testing.T) {
	c := newCluster(t)
	addr := freeAddr(t)
	err := c.joinUntil(t, "me.example:"+portOf(addr), 3*time.Second, func(cfg *Config) {
		cfg.Listen, cfg.lookup = addr, lookUp("127.0.0.1")
	})
	if want := "join me.example:" + portOf(addr) + " (" + addr + "): that is this broker itself: give another member's peer address"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func lookUp(ips ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (list []netip.Addr, err error) {
		for _, ip := range ips {
			list = append(list, netip.MustParseAddr(ip))
		}
		return list, nil
	}
}

// TestJoinAtTwoAddresses: a name means an address where nobody is, one that stays
// silent, and a member's.
func TestJoinAtTwoAddresses(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	port := portOf(a.Addr())
	answering(t, "127.0.0.9:"+port, nil)
	cfg := c.config("b", coordtest.NewMachine())
	cfg.Join, cfg.lookup = []string{"both.example:" + port}, lookUp("127.0.0.8", "127.0.0.9", "127.0.0.1")
	quick := *cfg.timing
	quick.rpc, quick.enqueue = 300*time.Millisecond, 300*time.Millisecond
	cfg.timing = &quick
	l, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.logs["b"] = l
	heard(t, l)
}

// TestCrashBeforeTheJoinIsForgotten: two of three voters ended after their first
// configuration and before they forgot the join peers. They are a quorum without the
// third: they waited to be admitted, and nobody could.
func TestCrashBeforeTheJoinIsForgotten(t *testing.T) {
	c := newCluster(t)
	sites := []string{"a", "b", "cc"}
	for _, site := range sites {
		c.open(t, site)
	}
	c.voters(t, sites...)
	for _, site := range sites {
		if err := c.logs[site].Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, site := range sites[1:] {
		m, err := loadMember(c.logs[site].cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Through = []string{c.logs["a"].Addr()}
		if err = m.save(c.logs[site].cfg.Dir); err != nil {
			t.Fatal(err)
		}
	}
	b := c.reopen(t, "b", func(*Config) {})
	heard(t, c.reopen(t, "cc", func(*Config) {}))
	heard(t, b)
	await(t, "the join is over", func() bool {
		m, err := loadMember(b.cfg.Dir)
		return err == nil && len(m.Through) == 0
	})
}
