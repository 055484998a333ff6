package raftlog

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster { return newSecured(t) })
}

func TestState(t *testing.T) {
	coordtest.RunState(t, func(t *testing.T) coordtest.Cluster { return newSecured(t) })
}

// quick is LAN timing for tests: shorter timeouts, no waiting for stability.
func quick() *timing {
	t := timingOf(LAN)
	t.heartbeat, t.election, t.lease = 250*time.Millisecond, 250*time.Millisecond, 250*time.Millisecond
	t.spread = 50 * time.Millisecond
	t.rpc, t.reply, t.tick = time.Second, time.Second, 200*time.Millisecond
	t.stable, t.promote = 50*time.Millisecond, 20*time.Millisecond
	t.replace = time.Hour // only where a test wants it
	t.compare = 20 * time.Millisecond
	return &t
}

// cluster runs members in this process over loopback, with faults.
type cluster struct {
	t     testing.TB
	dir   string
	fed   [16]byte
	time  *timing
	disk  func(store.Disk) store.Disk // for sites opened from now on
	hooks facade.Hooks
	// evidence: members keep states in a folder of their own.
	evidence bool
	// claims, if not nil, is the address that a site says it wants, "" for its own.
	claims func(site string) string

	away map[string]*atomic.Int64 // by site: how much longer the way to and from it is; nil: none
	net  *coordtest.Network       // Lag cuts a site off from raft's own connections
	// secured: members talk by mutual TLS.
	secured bool

	mu   sync.Mutex
	logs map[string]*Log
}

var _ coordtest.Cluster = (*cluster)(nil)

func newCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, dir: t.TempDir(), fed: [16]byte{1}, time: quick(),
		logs: map[string]*Log{}, net: &coordtest.Network{Slow: relay.KindRaft},
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
	c := newCluster(t)
	c.secured = true
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
		Config: facade.Config{
			Site: site, Node: coordtest.Node(site), Dir: filepath.Join(c.dir, site),
			Machine: m, Logger: testLogger().With().Str("site", site).Logger(), Hooks: c.hooks,
			Net: &relay.Network{Dial: func(ctx context.Context, addr string) (net.Conn,
				error,
			) {
				conn, err := c.net.Dial(ctx, site, addr)
				return c.late(conn, site, addr), err
			}},
		},
		timing: c.time, disk: c.disk,
	}
	if c.secured {
		var err error
		if cfg.Net, err = c.net.Secured(site); err != nil {
			c.t.Fatal(err)
		}
	}
	if c.claims != nil {
		cfg.claims = func() string { return c.claims(site) }
	}
	if c.evidence {
		cfg.Evidence, cfg.Proofs = filepath.Join(c.dir, site+".diverged"), filepath.Join(c.dir, site+".evidence")
	}
	if addr := c.net.Addr(site); addr != "" {
		cfg.Listen = addr
		return cfg
	}
	cfg.Listen = freeAddr(c.t)
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
	c.mu.Unlock()
	all := c.net.Join(site, l.Addr())
	for ctx.Err() == nil && all == 3 && len(l.Status().Voters) < 3 {
		<-time.After(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s did not become a voter: %+v", site, l.Status())
	}
	return l
}

func (c *cluster) running() (out []*Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.logs {
		if l.Ctx.Err() == nil {
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
			if l.Calls.Leads() {
				return l
			}
		}
		select {
		case <-end:
			t.Fatal("no leader")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *cluster) MoveLead(t *testing.T) {
	t.Helper()
	old := c.leader(t)
	await(t, "another leader than "+old.cfg.Site, func() bool {
		for _, l := range c.running() {
			if l != old && l.Calls.Leads() {
				return true
			}
		}
		if old.Calls.Leads() {
			_ = old.raft.LeadershipTransfer().Error() // on a busy machine it may come too late, or come back
		}
		return false
	})
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

func (c *cluster) Cut(site string) { c.net.Cut(site) }

func (c *cluster) Lag(site string) { c.net.Lag(site) }

func (c *cluster) Heal(site string) { c.net.Heal(site) }

func (c *cluster) LoseAnswer(site string) { c.net.LoseAnswer(site) }
