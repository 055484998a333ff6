package mem

import (
	"context"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

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

// A renewal that is held while the lead changes is decided by the new lead.
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
		t.Errorf("confirmed %d times by the former lead, %d by the new one: %v",
			grantors["a"].confirmed.Load(), grantors["b"].confirmed.Load(), err)
	}
}
