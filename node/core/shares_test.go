package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/jobspec"
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
	f := a.core.Figures()
	if u := f.Users; u.Users != 1 || u.Jobs != 20 || u.Tasks != 20 || u.HeldJobs < 17 || u.HeldTasks < 17 {
		t.Errorf("counted are %+v", u)
	}
	if f.Publishing != 0 {
		t.Errorf("%d jobs are on their way, though the others are held", f.Publishing)
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
	if a.core.pubs.Opened()+a.core.pubs.Len() > 0 || a.usersTasks("alice") != 0 {
		t.Errorf("left are %d held jobs, %d tasks of alice", a.core.pubs.Len(), a.usersTasks("alice"))
	}
}

// TestSubmitInTheTurnOfRegistration: such a job was held and not counted, so its user's turn never came.
func TestSubmitInTheTurnOfRegistration(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	a.submitOne("alice", sleepJob) // home is busy
	held, lost := a.reopen()
	spec, err := jobspec.ParseSpec([]byte(`{"command":["sleep","1"],"sites":{"only":["b"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got node.Answer
	sub := SubmitEvent{Reqs: []node.Request{{Spec: spec, User: "bob"}}, Reply: func(_ int, a node.Answer) { got = a }}
	boot := [16]byte{99}
	known, err := a.journal.Boot(boot)
	if err != nil {
		t.Fatal(err)
	}
	results := r.apply(command.Command{ID: command.ID{Site: a.name}, Body: &command.Register{
		Node: [16]byte{a.name[0]}, Boot: boot, Known: known, HTTP: "127.0.0.1:1", Peer: "127.0.0.1:2",
		MaxVersion: fsm.Version, Held: held, Lost: lost,
	}})
	a.turn(sub, RegisteredEvent{results[0], boot})
	r.settle()
	a.ticks(2)
	r.settle()
	if _, ok := r.state.Job(got.ID); !ok {
		t.Errorf("%+v stays held: %+v", got, a.core.Users())
	}
}

// TestHeldJobsLeaveTheSiteToOthers: a user's held jobs that only another site may run kept everybody's from starting at
// home, and filled the room for all.
func TestHeldJobsLeaveTheSiteToOthers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 1)
	a := r.sites[0]
	a.turn(DrainEvent{Drain: Drain{On: true}, Done: func() {}}) // for others
	r.settle()
	a.ticks(2)
	a.core.pubs.Limit(20_000)
	for range 40 {
		a.submitOne("alice", `{"command":["sleep","1"],"sites":{"only":["b"]}}`)
	}
	if got := a.submitOne("alice", `{"command":["true"],"sites":{"only":["b"]}}`); !errors.Is(got.Err, node.ErrFull) ||
		!strings.Contains(got.Err.Error(), "of user alice are held") {
		t.Errorf("one more of alice: %+v", got)
	}
	for _, user := range []string{"bob", ""} {
		if got := a.submitOne(user, sleepJob); got.Err != nil {
			t.Errorf("%q: %v", user, got.Err)
		}
	}
	if len(a.running) != 2 {
		t.Errorf("%d jobs run at their idle site, want 2", len(a.running))
	}
}

// TestRepeatBeforeTheRegistration: a repeat of a keyed request that came before the broker knew what is held was
// answered when the job was published, if ever.
func TestRepeatBeforeTheRegistration(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.floodOf("alice", 20, 1)
	first := a.submitBy("alice", sleepJob, "k")
	r.settle()
	held, lost := a.reopen()
	again := a.submitBy("alice", sleepJob, "k")
	a.register(held, lost)
	r.settle()
	if got := a.answers[again]; got.Err != nil || got.ID != a.answers[first].ID || got.Reason != publish.Held {
		t.Errorf("answered %+v", got)
	}
}

// TestEndsMakeRoomAtOnce: the next held job is published as soon as one ends, not with the next tick.
func TestEndsMakeRoomAtOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.floodOf("alice", 20, 1)
	for left := 20; left > 0; left-- {
		if len(a.running) != 1 {
			t.Fatalf("nothing runs, and %d jobs are left", left)
		}
		a.finish(a.only(), 0)
		r.settle()
	}
}
