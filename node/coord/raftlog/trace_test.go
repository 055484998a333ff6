package raftlog

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestTrace: the same stamped batches give the same state as on any other backend. They are ordered by a lone voter,
// which no busy machine deposes; the others take them in as they join.
func TestTrace(t *testing.T) {
	c := newCluster(t)
	c.time.tick = time.Hour // nothing moves by itself
	states := map[string]*coordtest.TraceState{}
	open := func(site string) {
		states[site] = coordtest.NewTraceState()
		c.Open(t, site, states[site])
	}
	open("a")
	lead := c.leader(t)
	term := lead.raft.CurrentTerm() // what is stamped otherwise is void
	for _, b := range coordtest.Trace(term) {
		batch, err := command.DecodeBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		h := relay.NoCalls(term, len(batch.Commands))
		log := raft.Log{Data: b, Extensions: h.Append(nil)}
		if err := lead.raft.ApplyLog(log, coordtest.Patience).Error(); err != nil {
			t.Fatal(err)
		}
	}
	open("b")
	open("cc")
	for _, l := range c.running() {
		if _, err := l.Sync(patience(t)); err != nil {
			t.Fatal(err)
		}
		states[l.cfg.Site].Check(t, term)
	}
}
