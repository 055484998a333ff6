//go:build zookeeper

package zk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// speaker proposes numbered texts, one after the other, until it is stopped.
type speaker struct {
	l    *Log
	m    *coordtest.Machine
	site string
	inc  uint64
	said int
}

func (c *cluster) open(t *testing.T, sites ...string) []*speaker {
	t.Helper()
	var all []*speaker
	for _, s := range sites {
		m := coordtest.NewMachine()
		l := c.Open(t, s, m).(*Log)
		sp := &speaker{l: l, m: m, site: s}
		sp.register(t, 1)
		all = append(all, sp)
	}
	return all
}

func (s *speaker) register(t *testing.T, boot byte) {
	t.Helper()
	r, err := s.l.Propose(patience(t), command.Command{
		ID:   command.ID{Site: s.site},
		Body: &command.Register{Node: coordtest.Node(s.site), Boot: [16]byte{boot}, HTTP: "h:1", Peer: "p:1", MaxVersion: 1},
	})
	if err != nil || r[0].Code != command.OK {
		t.Fatalf("register %s: %v, %v", s.site, r, err)
	}
	s.inc = r[0].Incarnation
}

// say proposes the next text until it is executed.
func (s *speaker) say(ctx context.Context) error {
	n := uint64(s.said + 1)
	r, err := s.l.Propose(ctx, command.Command{
		ID: command.ID{Site: s.site, Incarnation: s.inc, Seq: n}, Ack: n - 1,
		Body: &command.Addresses{HTTP: fmt.Sprint(s.site, n)},
	})
	if err == nil && r[0].Code != command.OK {
		err = fmt.Errorf("refused with %v", r[0].Code)
	}
	if err != nil {
		return err
	}
	s.said++
	return nil
}

// talk has every speaker say something all the time while a fault happens, and
// some more afterwards; then all must have applied the same, each text once.
func talk(t *testing.T, all []*speaker, fault func()) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			for more := 20; more > 0; {
				if err := s.say(patience(t)); err != nil {
					t.Errorf("%s says %d: %v", s.site, s.said+1, err)
					return
				}
				select {
				case <-stop:
					more--
				default:
				}
			}
		})
	}
	fault()
	close(stop)
	wg.Wait()
	same(t, all)
}

// same waits until all stand at one entry, and compares what they applied.
func same(t *testing.T, all []*speaker) {
	t.Helper()
	want := 0
	for _, s := range all {
		want += s.said
	}
	for ctx := patience(t); ; {
		i, trace := all[0].m.Entries()
		equal := true
		for _, s := range all[1:] {
			if _, err := s.l.Sync(ctx); err != nil {
				t.Fatalf("sync at %s: %v", s.site, err)
			}
			j, other := s.m.Entries()
			equal = equal && i == j
			if i == j && trace != other {
				t.Fatalf("%s and %s applied different entries up to %d", all[0].site, s.site, i)
			}
		}
		if equal {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the members never stood at one entry")
		}
	}
	for _, s := range all {
		if got := s.m.Executed(); got != want {
			t.Errorf("%s executed %d texts of %d", s.site, got, want)
		}
	}
}

func awaitServers(t *testing.T) {
	t.Helper()
	if err := servers.Await(patience(t)); err != nil {
		t.Fatal(err)
	}
}

func restart(t *testing.T, s *ensemble.Server) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	awaitServers(t)
}

// TestEnsembleLeaderKilled: kill -9 of the ensemble's own leader.
func TestEnsembleLeaderKilled(t *testing.T) {
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		for range 2 {
			s := servers.Leader()
			if s == nil {
				t.Fatal("the ensemble has no leader")
			}
			s.Kill()
			<-time.After(2 * time.Second)
			restart(t, s)
		}
	})
}

// TestEachServerKilled: kill -9 of one server after the other.
func TestEachServerKilled(t *testing.T) {
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		for _, s := range servers.Servers() {
			s.Kill()
			<-time.After(500 * time.Millisecond)
			restart(t, s)
		}
	})
}

// TestAllServersKilled: kill -9 of the whole ensemble, for longer than a session.
func TestAllServersKilled(t *testing.T) {
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		servers.Stop()
		<-time.After(2 * time.Second)
		if err := servers.Start(patience(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestServerStops: a server that is stopped, not dead, keeps its connections: the
// members on it go elsewhere.
func TestServerStops(t *testing.T) {
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		for _, s := range servers.Servers() {
			s.Signal(syscall.SIGSTOP)
			<-time.After(1500 * time.Millisecond)
			s.Signal(syscall.SIGCONT)
			awaitServers(t)
		}
	})
}

// TestCutLead: the leader is cut off from everything, and comes back.
func TestCutLead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		for range 2 {
			site := c.leader(t).cfg.Site
			c.Cut(site)
			<-time.After(2 * c.place.Session)
			c.Heal(site)
		}
	})
}

// TestSessionExpires: the ensemble ends every member's session, in mid-flight.
// Nothing is lost or doubled, and the ephemerals are there again.
func TestSessionExpires(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {
		for _, s := range all {
			before := s.l.c.zk.SessionID()
			expire(t, c, s.l)
			for ctx := patience(t); s.l.c.zk.SessionID() == before || !s.l.c.up.Load(); {
				if ctx.Err() != nil {
					t.Fatalf("%s has no new session", s.site)
				}
				<-time.After(10 * time.Millisecond)
			}
		}
	})
	for ctx := patience(t); ; {
		n, err := all[0].l.c.children(ctx, tree.PresentPath)
		if err != nil {
			t.Fatal(err)
		}
		if len(n.children) == 3 {
			break
		}
	}
}

// expire cuts a member from the ensemble until its session has ended.
func expire(t *testing.T, c *cluster, l *Log) {
	t.Helper()
	site := l.cfg.Site
	c.Lag(site)
	for ctx := patience(t); ; {
		n, err := c.other(site).c.get(ctx, tree.PresentPath+"/"+site)
		if err != nil {
			t.Fatal(err)
		}
		if !n.found {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	c.Heal(site)
}

// other is a running member that is not the site's.
func (c *cluster) other(site string) *Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, l := range c.logs {
		if s != site {
			return l
		}
	}
	return nil
}

// TestDeposedLeadCannotAppend: a leader that does not know of the next one is
// refused by the version of /lead, whatever it sends.
func TestDeposedLeadCannotAppend(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	old := c.leader(t)
	r := old.leaderTerm.Load()
	at := all[0].m.Index()
	// Somebody else takes /lead; the old one is not told.
	n, err := old.c.get(patience(t), tree.LeadPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.c.write(patience(t), old.c.set(tree.LeadPath, n.data, n.stat.Version)); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	f := &flight{n: r.next, data: []byte("never"), done: make(chan struct{})}
	r.mu.Unlock()
	if o := old.writeUntilSettled(r, f); o != relay.Refused {
		t.Errorf("a deposed leader's append is %v, not refused", o)
	}
	if _, err := (backend{old}).Confirm(patience(t), r.term); err == nil {
		t.Error("a deposed leader confirms that it leads")
	}
	talk(t, all, func() {})
	if all[0].m.Index() <= at {
		t.Error("nobody leads any more")
	}
}

// TestStoppedLeadWakesUp: a leader is stopped before it sends, deposed meanwhile,
// and sends when it goes on.
func TestStoppedLeadWakesUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	old := c.leader(t)
	r := old.leaderTerm.Load()
	talk(t, all, func() {
		c.MoveLead(t)
		wait := backend{old}.Append(r.term, command.AppendBatch(nil, r.term, 0, nil, nil), nil)
		if o, _ := wait(); o != relay.Refused {
			t.Error("a former leader appended")
		}
	})
}

// TestConfirmationIsATransaction: a transaction that only checks is ordered by the
// ensemble like any other; the proof of the leases rests on it.
func TestConfirmationIsATransaction(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	l := c.leader(t)
	zxid := func() int64 {
		if _, err := l.c.write(patience(t), l.c.create("/probe", nil, 0)); err != nil {
			t.Fatal(err)
		}
		n, err := l.c.get(patience(t), "/probe")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.c.write(patience(t), l.c.remove("/probe")); err != nil {
			t.Fatal(err)
		}
		return n.stat.Czxid
	}
	before := zxid()
	const rounds = 50
	for range rounds {
		if _, err := (backend{l}).Confirm(patience(t), l.leaderTerm.Load().term); err != nil {
			t.Fatal(err)
		}
	}
	if grown := zxid() - before; grown < rounds+2 {
		t.Errorf("%d confirmations made %d transactions", rounds, grown-2)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, not %v", err, want)
	}
}

// TestOvertakenOpening: entries of the next leader are no damage to one that was
// deposed before it knew the log's end.
func TestOvertakenOpening(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.open(t, "a")[0]
	l, now := s.l, c.leader(t).leaderTerm.Load()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	old := &leaderTerm{
		c: l.c, term: now.term - 1, version: now.version - 1, session: now.session, ctx: ctx, end: end,
		flying: map[uint64]*flight{},
	}
	if err := l.openTerm(ctx, old, l.machine.position.Now()); err != nil || old.isOpen() {
		t.Errorf("%v, orders: %v", err, old.isOpen())
	}
}
