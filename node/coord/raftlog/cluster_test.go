package raftlog

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster { return newCluster(t) })
}

func TestState(t *testing.T) {
	coordtest.RunState(t, func(t *testing.T) coordtest.Cluster { return newCluster(t) })
}

// quick is LAN timing for tests: shorter timeouts, no waiting for stability.
func quick() *timing {
	t := LAN.timing()
	t.heartbeat, t.election, t.lease = 250*time.Millisecond, 250*time.Millisecond, 250*time.Millisecond
	t.rpc, t.reply, t.tick = time.Second, time.Second, 200*time.Millisecond
	t.stable, t.promote = 50*time.Millisecond, 20*time.Millisecond
	t.replace = time.Hour // only where a test wants it
	return &t
}

// cluster runs members in this process over loopback, with faults.
type cluster struct {
	t     *testing.T
	dir   string
	fed   [16]byte
	time  *timing
	disk  func(disk) disk // for sites opened from now on
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
	c := &cluster{
		t: t, dir: t.TempDir(), fed: [16]byte{1}, time: quick(),
		logs: map[string]*Log{}, addr: map[string]string{},
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

func testLogger() zerolog.Logger {
	if os.Getenv("RAFTLOG_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "05.000"}).With().Timestamp().Logger()
}

func (c *cluster) config(site string, m coord.Machine) Config {
	cfg := Config{
		Site: site, Node: coordtest.Node(site), Dir: filepath.Join(c.dir, site), Listen: "127.0.0.1:0",
		Machine: m, Logger: testLogger().With().Str("site", site).Logger(), Hooks: c.hooks,
		timing: c.time, net: &relay.Network{Dial: func(ctx context.Context, addr string) (net.Conn, error) { return c.dial(ctx, site, addr) }},
		disk: c.disk,
	}
	if addr := c.address(site); addr != "" {
		cfg.Listen = addr
		return cfg
	}
	if running := c.running(); len(running) == 0 {
		cfg.Bootstrap, cfg.Federation = true, c.fed
	} else {
		for _, l := range running {
			cfg.Join = append(cfg.Join, l.Addr())
		}
	}
	return cfg
}

func (c *cluster) Open(t *testing.T, site string, m coord.Machine) coord.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), coordtest.Patience)
	defer cancel()
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
		t.Fatalf("%s did not become a voter: %+v", site, l.Status())
	}
	return l
}

func (c *cluster) address(site string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addr[site]
}

func (c *cluster) running() (out []*Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.logs {
		if l.ctx.Err() == nil {
			out = append(out, l)
		}
	}
	return out
}

// leader waits for a member that leads and is ready.
func (c *cluster) leader(t *testing.T) *Log {
	t.Helper()
	for end := time.After(coordtest.Patience); ; {
		for _, l := range c.running() {
			if l.calls.Leads() {
				return l
			}
		}
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
		if l.raft.LeadershipTransfer().Error() == nil && c.leader(t) != l {
			return
		}
	}
	t.Fatal("the lead does not move")
}

func (c *cluster) Compact(t *testing.T) {
	t.Helper()
	for _, l := range c.running() {
		rc := l.raft.ReloadableConfig()
		rc.TrailingLogs = 0
		if err := l.raft.ReloadConfig(rc); err != nil {
			t.Fatal(err)
		}
		if err := l.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			t.Fatalf("snapshot: %v", err)
		}
	}
}

func (c *cluster) Idle() {}

func (c *cluster) Cut(site string) { c.fault(c.cut, site, func(*faulty) bool { return true }) }

func (c *cluster) Lag(site string) {
	c.fault(c.lag, site, func(f *faulty) bool { return f.kind == relay.KindRaft })
}

func (c *cluster) fault(set map[string]bool, site string, hit func(*faulty) bool) {
	c.mu.Lock()
	set[site] = true
	var hits []*faulty
	for f := range c.conns {
		if (f.from == site || f.addr == c.addr[site]) && hit(f) {
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

// hit says whether a fault acts between a site and an address.
//
// REQUIRES: c.mu held.
func (c *cluster) hit(set map[string]bool, from, addr string) bool {
	for s := range set {
		if s == from || c.addr[s] == addr {
			return true
		}
	}
	return false
}

var errFault = errors.New("injected fault")

func (c *cluster) dial(ctx context.Context, from, addr string) (net.Conn, error) {
	c.mu.Lock()
	refused := c.hit(c.cut, from, addr)
	c.mu.Unlock()
	if refused {
		return nil, errFault
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	f := &faulty{Conn: conn, c: c, from: from, addr: addr}
	c.mu.Lock()
	c.conns[f] = struct{}{}
	c.mu.Unlock()
	return f, nil
}

// faulty is a dialed connection that faults act on.
type faulty struct {
	net.Conn
	c          *cluster
	from, addr string // dialing site, address dialed: a member is dialed before its Open returns
	greeted    bool
	kind       relay.Kind
}

func (f *faulty) Write(b []byte) (int, error) {
	if !f.greeted {
		f.greeted = true
		f.c.mu.Lock()
		f.kind = relay.Kind(b[5])
		refused := f.c.hit(f.c.cut, f.from, f.addr) || f.kind == relay.KindRaft && f.c.hit(f.c.lag, f.from, f.addr)
		f.c.mu.Unlock()
		if refused {
			_ = f.Close()
			return 0, errFault
		}
	}
	return f.Conn.Write(b)
}

func (f *faulty) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.c.mu.Lock()
	lost := n > 0 && f.kind == relay.KindForward && f.c.lose[f.from]
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
