package raftlog

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// lateConn is a connection whose bytes are under way for longer.
type lateConn struct {
	net.Conn
	ends [2]*atomic.Int64 // how far each end is; nil: it is near
}

func (c lateConn) Write(b []byte) (int, error) {
	for _, end := range c.ends {
		if end != nil && end.Load() > 0 {
			<-time.After(time.Duration(end.Load()))
		}
	}
	return c.Conn.Write(b)
}

// late has what a site sends arrive late, as far as one of the ends is away.
func (c *cluster) late(conn net.Conn, site, addr string) net.Conn {
	if c.away == nil || conn == nil {
		return conn
	}
	to := ""
	for other := range c.away {
		if c.net.Addr(other) == addr {
			to = other
		}
	}
	return lateConn{conn, [2]*atomic.Int64{c.away[site], c.away[to]}}
}

// newAway is a cluster of three that can be moved away from each other.
func newAway(t *testing.T, handed chan<- string) *cluster {
	t.Helper()
	c := newCluster(t)
	c.time.trips, c.time.far = 300*time.Millisecond, 500*time.Millisecond
	// Nothing but places and turns moves the leadership: no member misses a heartbeat because the machine is busy.
	c.time.heartbeat, c.time.election, c.time.lease = 2*time.Second, 2*time.Second, time.Second
	c.hooks.HandOver = func(reason string) { handed <- reason }
	c.away = map[string]*atomic.Int64{"a": {}, "b": {}, "c": {}}
	for _, site := range []string{"a", "b", "c"} {
		c.Open(t, site, coordtest.NewMachine())
	}
	return c
}

// A leader that is far from the others hands over to one of them, which keeps the leadership, and says why.
func TestFarLeaderHandsOver(t *testing.T) {
	handed := make(chan string, 16)
	c := newAway(t, handed)
	old := c.leader(t)
	c.away[old.cfg.Site].Store(int64(60 * time.Millisecond))
	select {
	case why := <-handed:
		if why != string(reasonFar) {
			t.Errorf("handed over for %q", why)
		}
	case <-time.After(coordtest.Patience):
		t.Fatalf("%s leads on: %+v", old.cfg.Site, old.Placement())
	}
	now := (&slowDisks{cluster: c}).awaitOther(t, old)
	select {
	case why := <-handed:
		t.Errorf("%s hands over, too, for %q", now.cfg.Site, why)
	case <-time.After(2 * time.Second):
	}
	if l := c.leader(t); l != now {
		t.Errorf("%s took over, now %s leads", now.cfg.Site, l.cfg.Site)
	}
	if !old.describeSelf(joinRequest{}).Far {
		t.Error("who has handed over would take the leadership back")
	}
	var p coord.Placement
	await(t, "measurements", func() bool { p = now.Placement(); return len(p.Majorities) == 3 })
	if slices.Contains(p.Turns, old.cfg.Site) || !slices.Contains(p.Turns, now.cfg.Site) {
		t.Errorf("placement %+v, %s was far", p, old.cfg.Site)
	}
	if near, far := p.Majorities[now.cfg.Site], p.Majorities[old.cfg.Site]; far < 60*time.Millisecond || near > far/2 {
		t.Errorf("placement %+v", p)
	}
	if _, err := old.Propose(patience(t), coordtest.Registration(old.cfg.Site)); err != nil {
		t.Errorf("who led before proposes: %v", err)
	}
}

// TestFarVotersHaveNoTurns: the leadership goes round those that are near a majority.
func TestFarVotersHaveNoTurns(t *testing.T) {
	handed := make(chan string, 64)
	c := newAway(t, handed)
	var others []string
	led := c.leader(t)
	for _, l := range c.running() {
		if l != led {
			others = append(others, l.cfg.Site)
		}
	}
	far := slices.Max(others)
	c.away[far].Store(int64(60 * time.Millisecond))
	for range 3 {
		var near []voterDisk
		// Until this voter has measured all are alike; on a busy machine a near one may measure as far for a moment.
		await(t, "the near voter alone to have its turn", func() bool {
			now := time.Now()
			near = led.leadership.nearEnough(led.leadership.otherVoters(led.raft.CommitIndex(), now), now)
			return len(near) == 1 && string(near[0].id) != far
		})
		led.leadership.transferTo(near[0], reasonTurn)
		next := string(near[0].id)
		await(t, "the next one to lead", func() bool { return c.leader(t).cfg.Site == next })
		led = c.leader(t)
	}
}

// TestVotersTellTheirRoundTrips: over mutual TLS, as everywhere, and each to the others only.
func TestVotersTellTheirRoundTrips(t *testing.T) {
	c := newSecured(t)
	c.time.trips = 200 * time.Millisecond
	for _, site := range []string{"a", "b", "c"} {
		c.Open(t, site, coordtest.NewMachine())
	}
	for _, l := range c.running() {
		await(t, "all round trips at "+l.cfg.Site, func() bool {
			p := l.Placement()
			return len(p.Trips) == 2 && len(p.Majorities) == 3 && len(p.Turns) == 3
		})
	}
}
