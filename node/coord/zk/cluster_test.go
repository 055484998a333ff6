//go:build zookeeper

package zk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// servers is the ensemble that the tests share; each has a chroot of its own.
var servers *ensemble.Ensemble

func TestMain(m *testing.M) {
	code, err := withEnsemble(m)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withEnsemble(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "zk")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	servers, err = ensemble.New(ensemble.Config{Dir: dir, Servers: 3, Tick: 100 * time.Millisecond, HeapMiB: 128})
	if err != nil {
		return 1, err
	}
	defer servers.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := servers.Start(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

var chroots atomic.Int64

// place is an empty chroot.
func place() Place {
	p, err := ParsePlace(fmt.Sprintf("%s/test/%d", servers.Addrs(), chroots.Add(1)))
	if err != nil {
		panic(err)
	}
	p.User, p.Password, p.Session = "federation", "secret", 600*time.Millisecond
	return p
}

// quick is LAN timing for tests.
func quick() *timing {
	t := LAN.timing()
	t.RPC, t.Reply, t.tick, t.poll = time.Second, time.Second, 200*time.Millisecond, 200*time.Millisecond
	return &t
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), coordtest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func testLogger() zerolog.Logger {
	if os.Getenv("ZK_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "05.000"}).With().Timestamp().Logger()
}

// cluster runs members in this process against the ensemble, with faults.
type cluster struct {
	t     *testing.T
	dir   string
	place Place
	fed   [16]byte
	time  *timing
	hooks Hooks

	mu    sync.Mutex
	logs  map[string]*Log
	addr  map[string]string // site → peer address
	cut   map[string]bool
	lag   map[string]bool
	lose  map[string]bool
	conns map[*faulty]struct{}
}

var _ coordtest.Cluster = (*cluster)(nil)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, dir: t.TempDir(), place: place(), fed: [16]byte{1}, time: quick(), logs: map[string]*Log{}, addr: map[string]string{},
		cut: map[string]bool{}, lag: map[string]bool{}, lose: map[string]bool{}, conns: map[*faulty]struct{}{},
	}
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, l := range c.logs {
			wg.Go(func() { _ = l.Close() })
		}
		wg.Wait()
	})
	return c
}

func (c *cluster) config(site string, m coord.Machine) Config {
	cfg := Config{
		Place: c.place, Site: site, Node: coordtest.Node(site), Dir: filepath.Join(c.dir, site), Listen: "127.0.0.1:0",
		Machine: m, Logger: testLogger().With().Str("site", site).Logger(), Hooks: c.hooks, timing: c.time,
		net:  &relay.Network{Dial: func(ctx context.Context, addr string) (net.Conn, error) { return c.dial(ctx, site, addr, true) }},
		dial: func(ctx context.Context, addr string) (net.Conn, error) { return c.dial(ctx, site, addr, false) },
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.addr[site] != "":
		cfg.Listen = c.addr[site]
	case len(c.addr) == 0:
		cfg.Bootstrap, cfg.Federation = true, c.fed
	default:
		cfg.Join = true
	}
	return cfg
}

func (c *cluster) Open(t *testing.T, site string, m coord.Machine) coord.Log {
	t.Helper()
	ctx := patience(t)
	l, err := Open(ctx, c.config(site, m))
	if err != nil {
		t.Fatalf("open %s: %v", site, err)
	}
	c.mu.Lock()
	c.logs[site] = l
	c.addr[site] = l.Addr()
	all := len(c.addr)
	c.mu.Unlock()
	for ctx.Err() == nil && all == 3 && len(l.Status().Voters) < 3 {
		<-time.After(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s does not see three voters: %+v", site, l.Status())
	}
	return l
}

func (c *cluster) leader(t *testing.T) *Log {
	t.Helper()
	for end := time.After(coordtest.Patience); ; {
		c.mu.Lock()
		for _, l := range c.logs {
			if l.calls.Leads() && l.ctx.Err() == nil {
				c.mu.Unlock()
				return l
			}
		}
		c.mu.Unlock()
		select {
		case <-end:
			t.Fatal("no lead")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *cluster) MoveLead(t *testing.T) {
	t.Helper()
	for range 20 {
		l := c.leader(t)
		l.handOver(patience(t))
		if c.leader(t) != l {
			return
		}
	}
	t.Fatal("the lead does not move")
}

func (c *cluster) Compact(t *testing.T) {
	t.Helper()
	for range 20 {
		l := c.leader(t)
		r := l.reign.Load()
		if r == nil {
			continue
		}
		err := l.compact(r, 0)
		if err == nil {
			return
		}
		t.Logf("compact: %v", err)
	}
	t.Fatal("no snapshot")
}

func (c *cluster) Idle() {}

func (c *cluster) Cut(site string) { c.fault(c.cut, site, func(*faulty) bool { return true }) }

func (c *cluster) Lag(site string) { c.fault(c.lag, site, func(f *faulty) bool { return !f.peer }) }

func (c *cluster) fault(set map[string]bool, site string, hit func(*faulty) bool) {
	c.mu.Lock()
	set[site] = true
	var hits []*faulty
	for f := range c.conns {
		if (f.from == site || f.peer && f.addr == c.addr[site]) && hit(f) {
			hits = append(hits, f)
		}
	}
	c.mu.Unlock()
	for _, f := range hits {
		_ = f.Close()
	}
}

func (c *cluster) Heal(site string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cut, site)
	delete(c.lag, site)
}

func (c *cluster) LoseAnswer(site string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose[site] = true
}

var errFault = errors.New("injected fault")

func (c *cluster) dial(ctx context.Context, from, addr string, peer bool) (net.Conn, error) {
	c.mu.Lock()
	refused := c.cut[from] || !peer && c.lag[from]
	for s := range c.cut {
		refused = refused || peer && c.addr[s] == addr
	}
	c.mu.Unlock()
	if refused {
		return nil, errFault
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	f := &faulty{Conn: conn, c: c, from: from, addr: addr, peer: peer}
	c.mu.Lock()
	c.conns[f] = struct{}{}
	c.mu.Unlock()
	return f, nil
}

// faulty is a dialed connection that faults act on.
type faulty struct {
	net.Conn
	c          *cluster
	from, addr string
	peer       bool // to another member, not to the ensemble
}

func (f *faulty) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.c.mu.Lock()
	lost := n > 0 && f.peer && f.c.lose[f.from]
	if lost {
		delete(f.c.lose, f.from)
	}
	f.c.mu.Unlock()
	if lost {
		_ = f.Close()
		return 0, errFault
	}
	return n, err
}

func (f *faulty) Close() error {
	f.c.mu.Lock()
	delete(f.c.conns, f)
	f.c.mu.Unlock()
	return f.Conn.Close()
}

func TestConformance(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster { return newCluster(t) })
}

func TestState(t *testing.T) {
	coordtest.RunState(t, func(t *testing.T) coordtest.Cluster { return newCluster(t) })
}
