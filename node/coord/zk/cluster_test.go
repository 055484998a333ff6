//go:build zookeeper

package zk

import (
	"context"
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
	"github.com/cloudshare/cloudshare/node/coord/facade"
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
	servers, err = ensemble.New(ensemble.Config{
		Dir: dir, Servers: 3, Tick: 100 * time.Millisecond, HeapMiB: 128, Flags: ensemble.Brief,
	})
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
	t := timingOf(LAN)
	t.RPC, t.Reply, t.tick, t.poll = time.Second, time.Second, 200*time.Millisecond, 200*time.Millisecond
	t.compare = 20 * time.Millisecond
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
	hooks facade.Hooks
	far   time.Duration // by which the ensemble's answers come later
	// listen is where a site listens; it tells the others another address, where nobody is.
	listen map[string]string

	net coordtest.Network // Lag cuts a site off from the ensemble and from feeds
	// secured: members talk by mutual TLS.
	secured bool

	mu   sync.Mutex
	logs map[string]*Log
}

var _ coordtest.Cluster = (*cluster)(nil)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, dir: t.TempDir(), place: place(), fed: [16]byte{1}, time: quick(), logs: map[string]*Log{},
		net: coordtest.Network{Slow: relay.KindFeed},
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

// newSecured returns a cluster whose members talk by mutual TLS.
func newSecured(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.secured = true
	return c
}

func (c *cluster) config(site string, m coord.Machine) Config {
	cfg := Config{
		Config: facade.Config{
			Site: site, Node: coordtest.Node(site), Dir: filepath.Join(c.dir, site), Listen: "127.0.0.1:0",
			Machine: m, Logger: testLogger().With().Str("site", site).Logger(), Hooks: c.hooks,
			Net: &relay.Network{Dial: func(ctx context.Context, addr string) (net.Conn,
				error,
			) {
				return c.net.Dial(ctx, site, addr)
			}},
		},
		Place: c.place, timing: c.time,
		dial: func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := c.net.DialBeyond(ctx, site, addr)
			if err == nil && c.far > 0 {
				conn = late(conn, c.far)
			}
			return conn, err
		},
	}
	if c.secured {
		var err error
		if cfg.Net, err = c.net.Secured(site); err != nil {
			c.t.Fatal(err)
		}
	}
	switch {
	case c.listen[site] != "":
		cfg.Listen, cfg.Advertise = c.listen[site], "127.0.0.1:1"
		cfg.Bootstrap, cfg.Federation = c.net.Size() == 0, c.fed
		cfg.Join = !cfg.Bootstrap
	case c.net.Addr(site) != "":
		cfg.Listen = c.net.Addr(site)
	case c.net.Size() == 0:
		cfg.Bootstrap, cfg.Federation = true, c.fed
	default:
		cfg.Join = true
	}
	return cfg
}

func (c *cluster) Open(t *testing.T, site string, m coord.Machine) coord.Log {
	t.Helper()
	ctx := patience(t)
	if f, forkable := m.(*coordtest.Forkable); forkable {
		f.Peers = c.net.Addr // its state knows no addresses
	}
	l, err := Open(ctx, c.config(site, m))
	if err != nil {
		t.Fatalf("open %s: %v", site, err)
	}
	c.mu.Lock()
	c.logs[site] = l
	c.mu.Unlock()
	all := c.net.Join(site, l.Addr())
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
			if l.Calls.Leads() && l.Ctx.Err() == nil {
				c.mu.Unlock()
				return l
			}
		}
		c.mu.Unlock()
		select {
		case <-end:
			t.Fatal("no leader")
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
	t.Fatal("the leader does not move")
}

func (c *cluster) Compact(t *testing.T) {
	t.Helper()
	for range 20 {
		l := c.leader(t)
		r := l.leaderTerm.Load()
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

func (c *cluster) Cut(site string) { c.net.Cut(site) }

func (c *cluster) Lag(site string) { c.net.Lag(site) }

func (c *cluster) Heal(site string) { c.net.Heal(site) }

func (c *cluster) LoseAnswer(site string) { c.net.LoseAnswer(site) }

func TestConformance(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster { return newSecured(t) })
}

// TestConformanceWithoutFeeds: members of a leader that hands nothing out follow by
// watches.
func TestConformanceWithoutFeeds(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster {
		c := newCluster(t)
		c.net.Never = relay.KindFeed
		return c
	})
}

func TestState(t *testing.T) {
	coordtest.RunState(t, func(t *testing.T) coordtest.Cluster { return newSecured(t) })
}
