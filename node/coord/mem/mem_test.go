package mem

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster { return newCluster() })
}

func TestState(t *testing.T) {
	coordtest.RunState(t, func(t *testing.T) coordtest.Cluster { return newCluster() })
}

// cluster adapts a Group to the suite; its clock moves with Idle only.
type cluster struct {
	*Group
	ms *atomic.Int64
}

var _ coordtest.Cluster = cluster{}

func newCluster() cluster {
	ms := new(atomic.Int64)
	return cluster{New(ms.Load), ms}
}

func (c cluster) Open(t *testing.T, site string, m coord.Machine) coord.Log {
	t.Helper()
	l, err := c.Group.Open(site, m)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c cluster) MoveLead(t *testing.T) {
	t.Helper()
	lead := c.Lead()
	for _, s := range []string{"a", "b", "c"} {
		if s != lead && c.SetLead(s) == nil {
			return
		}
	}
	t.Fatal("no other member can lead")
}

func (c cluster) Compact(t *testing.T) {
	t.Helper()
	if err := c.Group.Compact(); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) Idle() {
	c.ms.Add(1000)
	c.Tick()
}

// always grants.
type always struct{ confirmed atomic.Int32 }

func (*always) Received(coord.Renewal, uint64) bool { return true }

func (a *always) Confirmed(coord.Renewal, uint64) bool {
	a.confirmed.Add(1)
	return true
}

// A renewal that is held while the leader changes is decided by the new leader.
func TestHoldRenewals(t *testing.T) {
	g := New(func() int64 { return 0 })
	grantors := map[string]*always{}
	logs := map[string]*Log{}
	for _, s := range []string{"a", "b", "c"} {
		l, err := g.Open(s, coordtest.NewMachine())
		if err != nil {
			t.Fatal(err)
		}
		logs[s], grantors[s] = l, &always{}
		l.Grant(grantors[s])
	}
	ctx, cancel := context.WithTimeout(t.Context(), coordtest.Patience)
	defer cancel()
	release := g.HoldRenewals()
	end := make(chan error, 1)
	go func() { end <- logs["c"].Renew(ctx, coord.Renewal{Site: "c", Incarnation: 1}) }()
	if err := g.SetLead("b"); err != nil {
		t.Fatal(err)
	}
	release()
	release()
	if err := <-end; err != nil || grantors["a"].confirmed.Load() != 0 || grantors["b"].confirmed.Load() != 1 {
		t.Errorf("confirmed %d times by the former leader, %d by the new one: %v",
			grantors["a"].confirmed.Load(), grantors["b"].confirmed.Load(), err)
	}
}

// propose is a call of a site's member: so many commands, numbered from seq.
func propose(l *Log, seq uint64, n int) Call {
	c := Call{Log: l}
	for i := range n {
		c.Commands = append(c.Commands, command.Command{ID: command.ID{
			Site: l.site, Incarnation: 1,
			Seq: seq + uint64(i),
		}, Body: &command.Leave{}})
	}
	return c
}

// Calls of several members stand in one entry, in their order, and a refused one
// keeps all of them out.
func TestTogether(t *testing.T) {
	g := New(func() int64 { return 0 })
	var logs []*Log
	for _, s := range []string{"a", "b", "c"} {
		l, err := g.Open(s, coordtest.NewMachine())
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	before := g.last()
	results, err := g.Together(propose(logs[1], 1, 2), propose(logs[0], 1, 5000-2), propose(logs[1], 3, 1))
	if !errors.Is(err, coord.ErrRefused) || g.last() != before {
		t.Errorf("a call of 4998 commands among others: %d, %v", len(results), err)
	}
	results, err = g.Together(propose(logs[1], 1, 2), propose(logs[0], 1, 4096), propose(logs[1], 3, 1))
	if err != nil || len(results) != 3 || len(results[0]) != 2 || len(results[1]) != 4096 || len(results[2]) != 1 ||
		g.last() != before+1 {
		t.Fatalf("three calls: %d entries, %d results, %v", g.last()-before, len(results), err)
	}
	g.Lag("c")
	if _, err := g.Together(propose(logs[2], 1, 1)); !errors.Is(err, coord.ErrUnknown) {
		t.Errorf("a call of a member that lags: %v", err)
	}
	g.Cut("c")
	if _, err := g.Together(propose(logs[0], 5000, 1), propose(logs[2], 2, 1)); !errors.Is(err, coord.ErrNoLead) ||
		g.last() != before+2 {
		t.Errorf("with a call of a member that is cut off: %v", err)
	}
	if _, err := g.Together(Call{logs[0], []command.Command{{
		ID:   command.ID{Site: "a"},
		Body: &command.SiteLost{Site: "b", Term: 1},
	}}}); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("a site loss among others: %v", err)
	}
	g.Heal("c") // its given up call is delivered now, and settles nothing else
	results, err = g.Together(propose(logs[2], 3, 1), propose(logs[0], 5001, 2))
	if err != nil || len(results) != 2 || len(results[0]) != 1 || len(results[1]) != 2 {
		t.Errorf("after all that: %d results, %v", len(results), err)
	}
}

// However much is ordered together, the entries in memory stay few, and a member
// that comes later has them all the same.
func TestTogetherCompacts(t *testing.T) {
	g := New(func() int64 { return 0 })
	first := coordtest.NewMachine()
	a, err := g.Open("a", first)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		if _, err := g.Together(propose(a, 1+4000*i, 4000)); err != nil {
			t.Fatal(err)
		}
		if g.kept > max(keep, 2*len(g.snapshot))+4000*16+64 {
			t.Fatalf("%d bytes of entries are kept beside a snapshot of %d", g.kept, len(g.snapshot))
		}
	}
	for range 50_000 { // idle entries are small, but many
		if _, err := g.Together(); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.entries) > 20_000 || first.Index() < 50_000 {
		t.Errorf("%d entries of %d are kept", len(g.entries), first.Index())
	}
	late := coordtest.NewMachine()
	if _, err := g.Open("b", late); err != nil || late.Index() != first.Index() || g.base == 0 {
		t.Errorf("a later member is at entry %d of %d, %d compacted: %v", late.Index(), first.Index(), g.base, err)
	}
}
