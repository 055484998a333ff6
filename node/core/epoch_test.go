package core

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// forget puts the federation back to an earlier copy of its state, in a new epoch
// that a site begins.
func (r *rig) forget(copied []byte, site string) {
	r.t.Helper()
	s, err := fsm.Restore(bytes.NewReader(copied))
	if err != nil {
		r.t.Fatal(err)
	}
	r.state = s
	if res := r.apply(command.Command{
		ID:   command.ID{Site: site},
		Body: &command.Recover{Epoch: 1},
	}); res[0].Code != command.OK {
		r.t.Fatalf("recover: %v", res[0].Code)
	}
}

// copied is the state as one survivor may have it.
func (r *rig) copied() []byte {
	r.t.Helper()
	var b bytes.Buffer
	f := r.state.Snapshot()
	defer f.Release()
	if err := f.Write(&b); err != nil {
		r.t.Fatal(err)
	}
	return b.Bytes()
}

// TestNewEpochEndsWhatItDoesNotKnow: the entry is lost that assigned b another
// attempt of its own task. b ends it before it registers, keeps what the state
// knows, and runs what it had promised alone.
func TestNewEpochEndsWhatItDoesNotKnow(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 3)
	a, b := r.sites[0], r.sites[1]
	b.submit(`{"command":["sleep","60"],"count":4,"retry":{"max_attempts":2}}`, "")
	r.settle()
	if len(b.running) != 3 || len(a.running) != 1 {
		t.Fatalf("%d and %d run", len(a.running), len(b.running))
	}
	survivor := r.copied()
	b.finish(slices.Collect(maps.Keys(b.running))[0], 1)
	r.settle()
	again := executor.ID{}
	for id := range b.running {
		if id.Attempt == 2 {
			again = id
		}
	}
	if again.Attempt != 2 {
		t.Fatalf("no second attempt at b: %v", b.running)
	}

	b.reopen()
	promised := b.submit(sleepJob, "")
	b.ticks(int(publish.Patience/TickEvery) + 1)
	if got := b.answers[promised]; got.Err != nil || got.Durability != node.DurableSite {
		t.Fatalf("answer without a quorum: %+v", got)
	}
	r.forget(survivor, "a")
	b.reopen()
	b.stops = nil
	b.turn(EpochEvent{1})
	if !slices.Equal(b.stops, []executor.ID{again}) {
		t.Fatalf("stopped %v, not %v", b.stops, again)
	}
	if b.core.incarnation != 0 || journaledEpoch(t, b.journal) != 0 {
		t.Fatal("registered before it was dead")
	}
	b.finish(again, 137)
	if b.core.incarnation == 0 || journaledEpoch(t, b.journal) != 1 {
		t.Fatalf("incarnation %d, epoch %d", b.core.incarnation, journaledEpoch(t, b.journal))
	}
	known := r.state.Assignments("b")
	for _, as := range known {
		if _, ok := b.running[new(attempts.Memory).ID(as.AttemptRef)]; !ok || command.EpochOf(as.Token) != 0 {
			t.Errorf("%+v does not run at b", as.AttemptRef)
		}
	}
	if len(known) != 2 {
		t.Errorf("the federation has %v at b", known)
	}
	b.lease(time.Hour)
	r.settle()
	if v := r.job("b.1"); v.Counts[fsm.Queued] != 1 || v.Counts[fsm.Assigned] != 3 {
		t.Errorf("counts %v", v.Counts) // a has not registered: what it runs is its own word
	}
	own := executor.ID{Job: b.answers[promised].ID.String(), Attempt: 1}
	for id := range b.running {
		if id.Job == own.Job {
			own = id
		}
	}
	if own.Token <= again.Token { // it took the room, at home, under a token of the new epoch
		t.Errorf("what b promised alone is not running under a later token than %v: %v", again, b.running)
	}
}

// TestNewEpochOfAnEmptySite: a new site enters an epoch at once.
func TestNewEpochOfAnEmptySite(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	r.forget(r.copied(), "a")
	a.reopen()
	a.turn(EpochEvent{1})
	if a.core.incarnation == 0 || journaledEpoch(t, a.journal) != 1 {
		t.Errorf("incarnation %d, epoch %d", a.core.incarnation, journaledEpoch(t, a.journal))
	}
}
