package broker

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// comparing is a log whose members have found what a test says.
type comparing struct {
	coord.Log
	unsure atomic.Pointer[string]
}

func (c *comparing) Compared() coord.Comparison {
	found := coord.Comparison{Entry: 9, Liars: map[string]uint64{"site-3": 7}}
	if why := c.unsure.Load(); why != nil {
		found.Unsure, found.Differ = *why, map[string]uint64{"site-1": 8}
	}
	return found
}

// TestUnsureBrokerLendsNothing: while members say that this one's state may be wrong, its broker offers nothing,
// and the federation knows; then it lends again.
func TestUnsureBrokerLendsNothing(t *testing.T) {
	s := startSites(t, 1)[0]
	s.stop(t)
	found := &comparing{}
	s.wrap = func(l coord.Log) coord.Log { found.Log = l; return found }
	s.start(t)
	why := "its state differs from that of site-1"
	lends := func(machines int, closed command.Closure) func(*fsm.State) bool {
		return func(st *fsm.State) bool {
			v, _ := st.Site(s.name)
			return len(v.Machines) == machines && v.Closed == closed
		}
	}
	found.unsure.Store(&why)
	s.await(t, lends(0, command.ClosedDiffers))
	c := s.Status(false).Compared
	if c.Unsure != why || fmt.Sprint(c.Differs, c.Liars) != "[{site-1 8}] [{site-3 7}]" {
		t.Errorf("compared %+v", c)
	}
	found.unsure.Store(nil)
	s.await(t, lends(1, command.NotClosed))
}
