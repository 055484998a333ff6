package core

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// submitAs has users submit a job each under the same key, and returns the answers.
func (s *rigSite) submitAs(key string, users ...string) []node.Answer {
	s.rig.t.Helper()
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		s.rig.t.Fatal(err)
	}
	out := make([]node.Answer, len(users))
	var reqs []node.Request
	for _, user := range users {
		reqs = append(reqs, node.Request{Spec: spec, User: user, Key: key})
	}
	s.turn(SubmitEvent{Reqs: reqs, Reply: func(i int, a node.Answer) { out[i] = a }})
	s.rig.settle()
	return out
}

// TestJobsKeepTheirUser: a job is its user's at home, on its way, in the queue, and after a crash. Two users' same key
// stands for two jobs.
func TestJobsKeepTheirUser(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	users := []string{"alice", "bob", "", "alice"}
	got := a.submitAs("key", users...)
	if got[0].ID != got[3].ID || !got[3].Replayed || got[1].Replayed || got[2].Replayed {
		t.Errorf("answers %+v", got)
	}
	nums := []uint64{got[0].ID.Num, got[1].ID.Num, got[2].ID.Num}
	if slices.Sort(nums); len(slices.Compact(nums)) != 3 {
		t.Fatalf("jobs %v", nums)
	}
	for range 2 {
		for i, user := range users {
			if is := a.core.Whose().UserOf(got[i].ID.Num); is != user {
				t.Errorf("job %s is %q's, want %q", got[i].ID, is, user)
			}
		}
		a.boot()
		r.settle()
	}
	if again := a.submitAs("key", "bob")[0]; again.ID != got[1].ID || !again.Replayed {
		t.Errorf("bob's again: %+v", again)
	}
}
