package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestLowDiskOffersAndStartsNothing: the logs of another site's task, or of a
// home task that waited, would fill the same disk. What is assigned meanwhile is
// handed back without a loss; with room all goes on.
func TestLowDiskOffersAndStartsNothing(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	home := a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	cmds := a.pending // assigned to b in the moment in which b's disk fills
	a.pending = nil
	a.turn(ResultEvent{Cmds: cmds, Results: r.apply(cmds...)})
	b.turn(DiskEvent{fmt.Errorf("%w: /data", node.ErrStorageFull)})
	a.submit(sleepJob, "")
	r.settle()
	if len(b.running) != 0 {
		t.Fatalf("with a full disk b runs %v", b.running)
	}
	if v, _ := r.state.Site("b"); v.Exposed.MilliCPU != 0 || v.Assigned != (command.Resources{}) {
		t.Errorf("with a full disk b offers %+v, %+v assigned", v.Exposed, v.Assigned)
	}
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("what b handed back is %s", v.State)
	}
	b.turn(DiskEvent{})
	r.settle()
	if id := b.only(); id.Job != "a.2" || id.Attempt != 2 {
		t.Errorf("with room b runs %s, want attempt 2 of a.2", id)
	}

	// At home, too: the next attempt waits.
	if err := a.answers[home].Err; err != nil {
		t.Fatal(err)
	}
	a.turn(DiskEvent{node.ErrStorageFull})
	id := a.only()
	delete(a.running, id)
	a.turn(EndedEvent{id, executor.Result{Cause: executor.Vanished}})
	if len(a.running) != 0 {
		t.Errorf("on a full disk %v runs at home", a.running)
	}
	if w, ok := a.core.own.Why(1); !ok || !strings.Contains(w.Summary, node.ErrStorageFull.Error()) {
		t.Errorf("why it waits: %+v", w)
	}
	a.turn(DiskEvent{})
	if id := a.only(); id.Job != "a.1" || id.Attempt != 2 {
		t.Errorf("with room a runs %s, want attempt 2 of a.1", id)
	}
}
