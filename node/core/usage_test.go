package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/usage"
)

// batch is the last one of home runs that the site has proposed.
func (s *rigSite) batch() *command.Usage {
	s.rig.t.Helper()
	for _, cmd := range slices.Backward(s.pending) {
		if u, ok := cmd.Body.(*command.Usage); ok {
			return u
		}
	}
	s.rig.t.Fatal("no batch is proposed")
	return nil
}

// A new epoch had forgotten batch 1, and the open batch 2 was taken for applied:
// its runs never reached the ledger.
func TestNewEpochKeepsTheOpenUsage(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
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

// A site that was cut off kept a row of each run that ended, without a bound. With as many
// as it may keep it starts nothing more and says so; it takes jobs all the same, and
// when the federation is back the ledger has each run once.
func TestUnreportedRunsAreBounded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	held, lost := a.reopen() // alone
	u := &a.core.usage
	const most = 3
	u.Limit(most)
	for range 5 {
		a.submit(sleepJob, "")
	}
	for range most {
		a.finish(a.only(), 0)
		a.ticks(usageTicks)
	}
	last := a.submit(sleepJob, "")
	if len(a.running) != 0 || u.Unreported() != most || a.answers[last].Err != nil {
		t.Fatalf("%v run beside %d unreported runs; the last job: %v", a.running, u.Unreported(), a.answers[last].Err)
	}
	for _, num := range []uint64{4, 6} { // the one that waited, and the one that came now
		if w, ok := a.core.Own().Why(num); !ok || w.Waiting != 1 ||
			!strings.Contains(w.Summary, usage.ErrUnreported.Error()) {
			t.Errorf("why job %d waits: %+v", num, w)
		}
	}
	a.register(held, lost)
	a.lease(time.Hour)
	for len(r.state.Ledger().Matrix) == 0 || r.state.Ledger().Matrix[0].Tasks < 6 {
		a.ticks(usageTicks)
		r.settle()
		if len(a.running) > 0 {
			a.finish(a.only(), 0)
		}
	}
	a.ticks(usageTicks)
	r.settle()
	if m := r.state.Ledger().Matrix; len(m) != 1 || m[0].Tasks != 6 || m[0].A != "6000000" ||
		u.Unreported()+a.core.out.Len() != 0 {
		t.Errorf("matrix %+v, %d rows are left, want six runs once each", m, u.Unreported())
	}
}
