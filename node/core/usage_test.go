package core

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
)

// batch is the last one of home runs that the site has proposed.
func (s *rigSite) batch() *fsm.Usage {
	s.rig.t.Helper()
	for _, cmd := range slices.Backward(s.pending) {
		if u, ok := cmd.Body.(*fsm.Usage); ok {
			return u
		}
	}
	s.rig.t.Fatal("no batch is proposed")
	return nil
}

// A new epoch had forgotten batch 1, and the open batch 2 was taken for applied:
// its runs never reached the ledger.
func TestNewEpochKeepsTheOpenUsage(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	run := func() {
		a.submit(sleepJob, "")
		a.finish(a.only(), 0)
		a.ticks(usageTicks)
	}
	survivor := r.copied()
	run()
	r.settle() // batch 1 is applied, in an entry that will be lost
	run()      // batch 2 is open
	if u := a.batch(); u.Batch != 2 || len(u.Rows) != 1 {
		t.Fatalf("batch %d with %d rows is open, want batch 2 with one", u.Batch, len(u.Rows))
	}
	r.forget(survivor, "a")
	a.reopen()
	a.turn(EpochEvent{1})
	a.boot() // cut off once more before the batch is ordered
	if u := a.batch(); u.Batch != 1 || len(u.Rows) != 1 {
		t.Fatalf("batch %d with %d rows is open, want the same as batch 1", u.Batch, len(u.Rows))
	}
	r.settle()
	a.boot() // applied: not again
	run()
	if u := a.batch(); u.Batch != 2 {
		t.Errorf("the next batch is %d, want 2", u.Batch)
	}
	r.settle()
	ledger := r.state.Ledger()
	if len(ledger.Matrix) != 1 || ledger.Matrix[0].A != "2000000" {
		t.Errorf("matrix %+v, want the open batch's run and the one after it, once each", ledger.Matrix)
	}
}
