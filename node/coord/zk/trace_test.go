//go:build zookeeper

package zk

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestTrace: the same stamped batches give the same state as on any other backend.
func TestTrace(t *testing.T) {
	c := newCluster(t)
	c.time.tick = time.Hour // nothing moves by itself
	states := map[string]*coordtest.TraceState{}
	for _, s := range []string{"a", "b", "cc"} {
		states[s] = coordtest.NewTraceState()
		c.Open(t, s, states[s])
	}
	lead := c.leader(t)
	term := lead.leaderTerm.Load().term
	for _, b := range coordtest.Trace(coordtest.TraceTerm) {
		batch, err := command.DecodeBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		h := relay.NoCalls(term, len(batch.Commands))
		if o, _ := (backend{lead}).Append(term, b, h.Append(nil))(); o != relay.Ordered {
			t.Fatalf("an entry is %v", o)
		}
	}
	for site, l := range c.logs {
		if _, err := l.Sync(patience(t)); err != nil {
			t.Fatal(err)
		}
		states[site].Check(t, coordtest.TraceTerm)
	}
}
