package core

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// limitTo gives the users of a site at most n tasks each.
func (s *rigSite) limitTo(user string, n uint64) {
	s.rig.t.Helper()
	var err error
	s.turn(UserLimitsEvent{User: user, Change: node.UserLimitsChange{Tasks: &n}, Done: func(e error) { err = e }})
	s.rig.settle()
	if err != nil {
		s.rig.t.Fatal(err)
	}
}

// usersTasks returns what is counted of a user.
func (s *rigSite) usersTasks(user string) uint64 {
	for _, u := range s.core.Users() {
		if u.User == user {
			return u.Tasks
		}
	}
	return 0
}

// submitOne submits a job of a user.
func (s *rigSite) submitOne(user, text string) (a node.Answer) {
	s.rig.t.Helper()
	spec, err := jobspec.ParseSpec([]byte(text))
	if err != nil {
		s.rig.t.Fatal(err)
	}
	s.turn(SubmitEvent{Reqs: []node.Request{{Spec: spec, User: user}}, Reply: func(_ int, got node.Answer) { a = got }})
	s.rig.settle()
	return a
}

// TestUserQuotasHoldOverACrash: what a user has at home and in the queue counts, also after a crash, what is cancelled
// counts no more, and other users and the site's own jobs are not concerned.
func TestUserQuotasHoldOverACrash(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	a.limitTo(node.EveryUser, 3)
	a.limitTo("bob", 1)
	var last node.Answer
	for range 3 {
		if last = a.submitOne("alice", sleepJob); last.Err != nil {
			t.Fatal(last.Err)
		}
	}
	refused := func(user string) {
		t.Helper()
		var quota *node.UserQuotaError
		got := a.submitOne(user, sleepJob)
		if !errors.As(got.Err, &quota) || quota.User != user || quota.Quota != node.UserTasks {
			t.Errorf("%s: %+v", user, got)
		}
	}
	refused("alice")
	if got := a.submitOne("bob", sleepJob); got.Err != nil {
		t.Error(got.Err)
	}
	for range 5 {
		if got := a.submitOne("", sleepJob); got.Err != nil {
			t.Error(got.Err)
		}
	}
	a.boot()
	r.settle()
	refused("alice")
	refused("bob")
	if n := a.usersTasks("alice"); n != 3 {
		t.Fatalf("after a crash alice has %d tasks", n)
	}
	a.turn(CancelEvent{Num: last.ID.Num, Reply: func(error) {}})
	r.settle()
	for i := 0; i < 1000 && a.usersTasks("alice") > 2; i++ {
		a.turn(TickEvent{})
		r.settle()
	}
	if got := a.submitOne("alice", sleepJob); got.Err != nil {
		t.Error(got.Err)
	}
}

// TestQuotasHoldBeforeRegistration: a broker that comes back without its federation knows what its users have
// submitted.
func TestQuotasHoldBeforeRegistration(t *testing.T) {
	a := newRig(t, command.DefaultParams(), 1, 1).sites[0]
	a.limitTo("alice", 3)
	for range 3 {
		if x := a.submitOne("alice", sleepJob); x.Err != nil {
			t.Fatal(x.Err)
		}
	}
	a.reopen()
	if n := a.usersTasks("alice"); n != 3 {
		t.Errorf("alice has %d tasks after the restart, want 3", n)
	}
	if x := a.submitOne("alice", sleepJob); x.Err == nil {
		t.Error("a fourth task was taken")
	}
}
