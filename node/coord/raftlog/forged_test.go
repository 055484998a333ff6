package raftlog

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestForgedEntriesStopNobody: a leader whose program is not ours orders what nobody can read. All go on, with the same
// state, and what stands beside it counts.
func TestForgedEntriesStopNobody(t *testing.T) {
	c := newCluster(t)
	c.time.tick = time.Hour // nothing moves by itself
	states := map[string]*coordtest.TraceState{}
	open := func(site string) {
		states[site] = coordtest.NewTraceState()
		c.Open(t, site, states[site])
	}
	open("a")
	lead := c.leader(t)
	order := func(data []byte, h relay.Header) {
		t.Helper()
		log := raft.Log{Data: data, Extensions: h.Append(nil)}
		if err := lead.raft.ApplyLog(log, coordtest.Patience).Error(); err != nil {
			t.Fatal(err)
		}
	}
	term := lead.raft.CurrentTerm()
	genesis := command.Append(nil, command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, Params: command.DefaultParams(),
	}})
	order(command.AppendBatch(nil, term, 0, [][]byte{genesis}, nil), relay.NoCalls(term, 1))
	was, _ := states["a"].Hash()

	unknown := []byte{7, 200, 1, 'a', 1, 1, 0, 9} // a kind that nobody has
	register := command.Append(nil, command.Command{ID: command.ID{Site: "a"}, Body: &command.Register{
		Node: [16]byte{1}, Boot: [16]byte{1}, MaxVersion: 1,
	}})
	order([]byte("no batch"), relay.NoCalls(term, 1))
	order([]byte{command.Format + 1, 1, 0, 0}, relay.NoCalls(term, 0))
	order(command.AppendBatch(nil, term, 1, [][]byte{unknown, register, {}}, nil), relay.NoCalls(term, 3))
	order(command.AppendBatch(nil, term, 2, [][]byte{unknown, register}, nil), relay.NoCalls(term, 2))
	order(command.AppendBatch(nil, term, 3, nil, nil), relay.NoCalls(term, 4000))
	log := raft.Log{Data: command.AppendBatch(nil, term, 4, nil, nil), Extensions: []byte("no header")}
	if err := lead.raft.ApplyLog(log, coordtest.Patience).Error(); err != nil {
		t.Fatal(err)
	}
	open("b")
	open("cc")
	index, hash := states["a"].Hash()
	if index != was+5 {
		t.Errorf("entry %d after five more than %d", index, was)
	}
	for _, l := range c.running() {
		if _, err := l.Sync(patience(t)); err != nil || l.Err() != nil {
			t.Errorf("%s stopped: %v, %v", l.cfg.Site, err, l.Err())
		}
		if at, of := states[l.cfg.Site].Hash(); at != index || of != hash {
			t.Errorf("%s has entry %d with %x, a has %d with %x", l.cfg.Site, at, of[:4], index, hash[:4])
		}
	}
	if states["a"].Admit("b", [16]byte{1}) == nil {
		t.Error("what stood beside the unreadable was not executed: a's node may take another name")
	}
}
