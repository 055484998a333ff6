package core

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// cancelled has jobs cancelled in one turn, and says whether all of them were, and nothing of them ever began.
func (s *rigSite) cancelled(ids ...command.JobID) {
	s.rig.t.Helper()
	var evs []Event
	told := 0
	for _, id := range ids {
		evs = append(evs, CancelEvent{Num: id.Num, Reply: func(err error) {
			if told++; err != nil {
				s.rig.t.Fatalf("cancel job %s: %v", id, err)
			}
		}})
	}
	s.turn(evs...)
	s.rig.settle()
	if told != len(ids) {
		s.rig.t.Fatalf("%d of %d who cancelled were answered", told, len(ids))
	}
	for _, id := range ids {
		if v, ok := s.rig.state.Job(id); !ok || v.State.String() != "cancelled" {
			s.rig.t.Fatalf("job %s is %s, known: %t", id, v.State, ok)
		}
		for _, x := range s.rig.sites {
			for _, began := range x.history {
				if began.Job == id.String() {
					s.rig.t.Fatalf("%s of the cancelled job began at %s", began, x.name)
				}
			}
		}
	}
}

// TestCancelledHeldJobNeverBegins: a held job that is cancelled is published to be ended. It was cancelled an entry
// later, and began meanwhile where a machine was idle.
func TestCancelledHeldJobNeverBegins(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	const idleAtB = `{"command":["sleep","1"],"sites":{"only":["b"]}}`
	a.submitOne("alice", `{"command":["sleep","1"],"count":8,"sites":{"only":["a"]}}`) // fills the window
	var held []command.JobID
	for range 5 {
		got := a.submitOne("alice", idleAtB)
		if got.Durability != node.DurableSite {
			t.Fatalf("not held: %+v", got)
		}
		held = append(held, got.ID)
	}
	a.cancelled(held[4])
	a.cancelled(held[1], held[2])
	a.cancelled(held[0], held[3])
	if n := len(r.sites[1].history); n != 0 {
		t.Errorf("%d tasks began at b", n)
	}
}

// TestManyCancelledHeldJobsNeverBegin: so it is with more than one command can have behind it, also when the broker is
// registered again while they are ordered.
func TestManyCancelledHeldJobsNeverBegin(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a := r.sites[0]
	a.submitOne("alice", `{"command":["sleep","1"],"count":8,"sites":{"only":["a"]}}`)
	var ids []command.JobID
	for range 700 {
		ids = append(ids, a.submitOne("alice", `{"command":["sleep","1"],"sites":{"only":["b"]}}`).ID)
	}
	a.cancelled(ids[:350]...)
	told := 0
	for _, id := range ids[350:] {
		a.turn(CancelEvent{Num: id.Num, Reply: func(err error) {
			if told++; err != nil {
				t.Fatalf("cancel job %s: %v", id, err)
			}
		}})
	}
	a.pending = nil // of the life that ends
	a.register(a.core.Registration())
	r.settle()
	if n := len(r.sites[1].history); n != 0 || told != 350 {
		t.Errorf("%d tasks began at b, %d of 350 were answered", n, told)
	}
}

// TestCancelledWhileTheQueueIsFull: what a full queue refuses is cancelled when it is asked again.
func TestCancelledWhileTheQueueIsFull(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.floodOf("alice", 20, 1)
	nums := slices.Collect(a.core.pubs.Numbers())
	told := false
	a.turn(CancelEvent{Num: nums[5], Reply: func(err error) { told = err == nil }})
	refused := make([]command.Result, len(a.pending))
	for i, cmd := range a.pending {
		refused[i].Code = command.TooManyJobs
		if cmd.Body.Kind() == (&command.Cancel{}).Kind() {
			refused[i].Code = command.UnknownJob
		}
	}
	cmds := a.pending
	a.pending = nil
	a.turn(ResultEvent{Cmds: cmds, Results: refused})
	if r.settle(); told {
		t.Fatal("answered while the job is on its way")
	}
	a.ticks(200)
	r.settle()
	if v, ok := r.state.Job(command.JobID{Site: "a", Num: nums[5]}); !ok || v.State.String() != "cancelled" || !told {
		t.Errorf("job %d is %s, known: %t; answered: %t", nums[5], v.State, ok, told)
	}
}
