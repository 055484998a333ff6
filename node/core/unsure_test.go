package core

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/explain"
)

// TestUnsureStartsNothingForOthers: a site whose state may be wrong offers nothing and hands foreign tasks back
// without a loss; its own go on. Once it is sure it lends again.
func TestUnsureStartsNothingForOthers(t *testing.T) {
	const why = "its state differs from that of c"
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	cmds := a.pending // assigned to b in the moment in which b becomes unsure
	a.pending = nil
	a.turn(ResultEvent{Cmds: cmds, Results: r.apply(cmds...)})
	b.turn(UnsureEvent{why})
	r.settle()
	if len(b.running) != 0 {
		t.Fatalf("unsure b runs %v", b.running)
	}
	v, _ := r.state.Site("b")
	if v.Exposed.MilliCPU != 0 || v.Assigned != (command.Resources{}) || v.Closed != command.ClosedDiffers {
		t.Errorf("unsure b offers %+v, %+v assigned, closed %v", v.Exposed, v.Assigned, v.Closed)
	}
	if words := explain.ClosedText(b.core.ClosedWhy()); words != why {
		t.Errorf("b says %q", words)
	}
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("what b handed back is %s", v.State)
	}
	b.submit(sleepJob, "")
	r.settle()
	if id := b.only(); !strings.HasPrefix(id.Job, "b.") {
		t.Errorf("unsure b runs %s", id)
	}
	id := b.only()
	b.turn(UnsureEvent{})
	r.settle()
	delete(b.running, id)
	b.turn(EndedEvent{ID: id})
	r.settle()
	if id := b.only(); id.Job != "a.2" || id.Attempt != 2 {
		t.Errorf("once sure, b runs %s, want attempt 2 of a.2", id)
	}
}
