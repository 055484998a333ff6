package core

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// floodOf has a user submit many jobs of one core in one request each.
func (s *rigSite) floodOf(user string, jobs, tasks int) (first, last node.Answer) {
	for i := range jobs {
		last = s.submitOne(user, fmt.Sprintf(`{"command":["sleep","1"],"count":%d}`, tasks))
		if i == 0 {
			first = last
		}
	}
	return first, last
}

// finishOne has the one task that runs end after a second.
func (s *rigSite) finishOne() {
	s.rig.t.Helper()
	s.ticks(10)
	s.rig.settle()
	s.finish(s.only(), 0)
	s.ticks(11) // what it used is seen, and said
	s.rig.settle()
}

// until has tasks end, one after the other, until one of a job runs; it returns how many ended before.
func (s *rigSite) until(id command.JobID, most int) (before int) {
	s.rig.t.Helper()
	for ; s.only().Job != id.String(); before++ {
		if before == most {
			s.rig.t.Fatalf("job %s does not run after %d tasks", id, before)
		}
		s.finishOne()
	}
	return before
}

// TestFloodOfOneUser: whether one user floods the site with jobs or with an array, another one's job runs soon, also
// when the broker was killed in between.
func TestFloodOfOneUser(t *testing.T) {
	for name, shape := range map[string]struct{ jobs, tasks int }{"jobs": {300, 1}, "an array": {1, 300}, "arrays": {10, 30}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, command.DefaultParams(), 1)
			a := r.sites[0]
			a.floodOf("alice", shape.jobs, shape.tasks)
			for range 5 {
				a.finishOne()
			}
			bob := a.submitOne("bob", sleepJob)
			if n := a.until(bob.ID, 20); n > 3 {
				t.Errorf("bob's job ran after %d of alice's tasks", n)
			}
			a.boot()
			r.settle()
			bob = a.submitOne("bob", sleepJob)
			if n := a.until(bob.ID, 20); n > 5 {
				t.Errorf("bob's next job ran after %d tasks", n)
			}
		})
	}
}

// TestHeldJobs: jobs beyond the window are answered from the journal, are listed, come back with their key, and are not
// in the state; a crash publishes none of them.
func TestHeldJobs(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	_, last := a.floodOf("alice", 20, 1)
	if last.Err != nil || last.Durability != node.DurableSite || last.Reason != publish.Held {
		t.Fatalf("the last of a flood: %+v", last)
	}
	published := func() (n int) {
		for v := range r.state.OwnJobs("a") {
			if !v.State.Ended() {
				n++
			}
		}
		return n
	}
	if n := published(); n > 3 {
		t.Errorf("%d jobs of a window of two cores are published", n)
	}
	a.boot()
	r.settle()
	if n := published(); n > 3 {
		t.Errorf("after a crash %d jobs are published", n)
	}
	if v, ok := a.core.Own().Job(last.ID.Num); !ok || v.Reason != publish.Held || v.State != fsm.Queued.String() {
		t.Errorf("shown as %+v", v)
	}
	if n := a.usersTasks("alice"); n != 20 {
		t.Errorf("alice has %d tasks", n)
	}
	var err error
	a.turn(CancelEvent{Num: last.ID.Num, Reply: func(e error) { err = e }})
	r.settle()
	if v, ok := r.state.Job(last.ID); err != nil || !ok || v.State.String() != "cancelled" {
		t.Errorf("cancelled: %v, %+v", err, v)
	}
	for range 30 {
		if len(a.running) == 0 {
			break
		}
		a.finish(a.only(), 0)
		a.ticks(2)
		r.settle()
	}
	a.ticks(1)
	if !a.core.pubs.Empty() || a.usersTasks("alice") != 0 {
		t.Errorf("left are %d held jobs, %d tasks of alice", a.core.pubs.Len(), a.usersTasks("alice"))
	}
}
