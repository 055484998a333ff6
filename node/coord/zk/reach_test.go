//go:build zookeeper

package zk

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// TestUnreachedLeaderHandsOver: a member that tells the others an address where nobody is
// leads first. One of the others does soon, all go on, and it stays fit for nothing but
// to lead alone, until somebody reaches it.
func TestUnreachedLeaderHandsOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	where, err := ensemble.New(ensemble.Config{Dir: t.TempDir(), Servers: 1}) // for its port: it is not started
	if err != nil {
		t.Fatal(err)
	}
	c.listen = map[string]string{"a": where.Addrs()}
	all := c.open(t, "a", "b", "cc") // each registers: it waits until it is heard
	a := all[0]
	talk(t, all, func() {})
	if now := c.leader(t); now == a.l {
		t.Error("it leads, and nobody reaches it")
	}
	says := func(unreached bool) func() bool {
		return func() bool {
			for _, s := range all {
				x, y := s.l.group.marksOf(s.site)
				if want := unreached && s == a; x != want || y != want {
					return false
				}
			}
			return true
		}
	}
	a.await(t, "the only one that is not reached, and not fit", says(true))
	conn, err := (&relay.Dialer{Net: &relay.Network{}, Site: "b"}).Dial(patience(t),
		relay.Peer{Site: "a", Addr: where.Addrs()}, relay.KindFeed, a.l.line)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	a.await(t, "fit again", says(false))
	for _, s := range all[1:] {
		if err := s.l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.say(patience(t)); err != nil {
		t.Errorf("alone it does not lead: %v", err)
	}
}

// await waits for something at a member.
func (s *speaker) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(coordtest.Patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s: never %s", s.site, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
