package core

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// wideJob fits at no site of these tests: it goes to the queue.
const wideJob = `{"command":["true"],"resources":{"cpu":64}}`

// submits are the publications among what the site has proposed.
func (s *rigSite) submits() (list []*command.Submit) {
	for _, cmd := range s.pending {
		if sub, ok := cmd.Body.(*command.Submit); ok {
			list = append(list, sub)
		}
	}
	return list
}

// refuseAll has the order answer all proposed jobs with a code.
func (s *rigSite) refuseAll(code command.Code) {
	s.rig.t.Helper()
	mine := s.pending
	s.pending = nil
	got := make([]command.Result, len(mine))
	for i := range mine {
		if sub, ok := mine[i].Body.(*command.Submit); ok {
			for range sub.Jobs {
				got[i].Jobs = append(got[i].Jobs, code)
			}
		}
	}
	s.turn(ResultEvent{Cmds: mine, Results: got})
}

// TestAloneSiteIsBounded: without a quorum nothing takes publications away, so a
// site refuses more than it has memory for, and forgets what it refused. What
// starts at home needs no such room.
func TestAloneSiteIsBounded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	r.now = r.now.Add(2 * time.Hour) // the lease is over
	first := a.submit(wideJob, "")
	size := a.core.pubs.Bytes()
	if size == 0 || a.answers[first].Durability != node.DurableSite {
		t.Fatalf("a job alone takes %d bytes: %+v", size, a.answers[first])
	}
	a.core.pubs.Limit(3 * size)
	kept := []int{first, a.submit(wideJob, ""), a.submit(wideJob, "")}
	for _, i := range kept {
		if err := a.answers[i].Err; err != nil {
			t.Fatalf("job %d of 3 that there is room for: %v", i+1, err)
		}
	}
	next := a.core.nextJob
	over := a.submit(wideJob, "key")
	if err := a.answers[over].Err; !errors.Is(err, node.ErrFull) || a.core.nextJob != next {
		t.Fatalf("beyond the bound: %v", err)
	}
	home := a.submit(sleepJob, "")
	if err := a.answers[home].Err; err != nil || len(a.running) != 1 {
		t.Errorf("a job that starts at home: %v", err)
	}

	a.lease(time.Hour)
	r.settle()
	if n := a.core.pubs.Bytes(); n != 0 {
		t.Errorf("%d bytes are counted for what the order has taken", n)
	}
	if i := a.submit(wideJob, "key"); a.core.pubs.Find(next+1) == nil {
		t.Errorf("with room again: %+v", a.answers[i])
	}
}

// TestRefusedPromisesShareCommands: what a site alone has promised one by one
// and a full queue refuses is asked again in groups, and lost by no restart.
func TestRefusedPromisesShareCommands(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	r.now = r.now.Add(2 * time.Hour)
	const jobs = 300
	for range jobs {
		a.submit(wideJob, "")
	}
	a.lease(time.Hour)
	if n := len(a.submits()); n != jobs {
		t.Fatalf("%d commands for %d jobs that came one by one", n, jobs)
	}
	for range 2 {
		a.refuseAll(command.TooManyJobs)
		if n := len(a.submits()); n != 0 {
			t.Fatalf("%d commands at once after a refusal", n)
		}
		r.now = r.now.Add(2 * publish.FullPause)
		a.turn(TickEvent{})
		if subs := a.submits(); len(subs) != 1 || len(subs[0].Jobs) != jobs {
			t.Fatalf("%d commands ask again for %d jobs, want one", len(subs), jobs)
		}
	}
	a.boot()
	r.settle()
	for num := range uint64(jobs) {
		if _, ok := r.state.Job(command.JobID{Site: "a", Num: num + 1}); !ok {
			t.Fatalf("job %d that was promised is gone", num+1)
		}
	}
	if b := &a.core.pubs; b.Bytes() != 0 || b.Opened()+b.Len() > 0 {
		t.Errorf("%d bytes are still counted, empty %v", b.Bytes(), b.Opened()+b.Len() == 0)
	}
}

// TestQuotaIsRefusedInTheSameWords: a job beyond its site's quota is refused before it
// is sent, and takes no number; one that the broker could not know of is refused by the
// state. Who asks is told the same.
func TestQuotaIsRefusedInTheSameWords(t *testing.T) {
	const large = `{"command":["true"],"count":1000000,"resources":{"cpu":64}}`
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	for range 99 { // of 100 million tasks
		a.submit(large, "")
	}
	r.settle()
	both := []int{a.submit(large, ""), a.submit(large, "")} // the state has neither yet
	r.settle()
	next := a.core.nextJob
	early := a.submit(large, "key")
	if err := a.answers[both[0]].Err; err != nil || a.core.nextJob != next {
		t.Fatalf("the 100th job: %v; job %d is next, was %d", err, a.core.nextJob, next)
	}
	want := node.QuotaError{
		Site: "a", Use: fsm.Use{Quota: command.QuotaTasks, Used: 100_000_000, Limit: 100_000_000},
		Need: 1_000_000,
	}
	for _, i := range []int{both[1], early} {
		var got *node.QuotaError
		if err := a.answers[i].Err; !errors.As(err, &got) || *got != want || !errors.Is(err, node.ErrFull) ||
			err.Error() != want.Error() {
			t.Errorf("job %d: %v, want %v", i+1, err, &want)
		}
	}
	if small := a.submit(sleepJob, ""); a.answers[small].Err != nil {
		t.Errorf("a job that starts at home: %v", a.answers[small].Err)
	}
}
