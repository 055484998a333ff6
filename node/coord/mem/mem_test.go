package mem

import (
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
