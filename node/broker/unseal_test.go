package broker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/seal"
)

// TestKeysAreForTheAssignedSite: the owner gives the key of a job to the site that runs it, and to nobody else.
func TestKeysAreForTheAssignedSite(t *testing.T) {
	sites := startSites(t, 1, 1, 1)
	a, b, c := sites[0], sites[1], sites[2]
	job := a.accept(t, `{"name":"plan","command":["secret"],"env":{"A":"secret"},"sites":{"only":["site-2"]}}`).ID
	id := <-b.handler.started
	ref := command.AttemptRef{Job: job, Task: id.Task, Attempt: id.Attempt, Token: id.Token}
	if got := b.handler.states[id].Task; got.Command[0] != "secret" || got.Env["A"] != "secret" {
		t.Fatalf("site-2 runs %+v", got)
	}
	c.await(t, func(s *fsm.State) bool { _, ok := s.Job(job); return ok })
	ask := func(from string, index uint64, ref command.AttemptRef) seal.Answer {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return a.Keys(ctx, from, index, []command.AttemptRef{ref})[0]
	}
	if got := ask("site-2", 1, ref); got.Refusal != seal.Granted {
		t.Errorf("the site that runs it: %s", got.Refusal)
	}
	other, next := ref, ref
	other.Job.Site = "site-3"
	next.Attempt++
	for name, got := range map[string]seal.Answer{
		"a third site": ask("site-3", 1, ref), "the owner's name": ask("site-1", 1, ref), "nobody": ask("", 1, ref),
		"another's job": ask("site-2", 1, other), "another attempt": ask("site-2", 1, next),
	} {
		if got != (seal.Answer{Refusal: seal.NotAssigned}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := ask("site-2", 1<<40, ref); got != (seal.Answer{Refusal: seal.Behind}) {
		t.Errorf("by a state that is not yet: %+v", got)
	}
	for _, s := range sites {
		j, err := s.Job(t.Context(), job)
		sealed := s != a
		if err != nil || j.Sealed != sealed || (len(j.Spec.Command) == 0) != sealed || (j.Spec.Name == "") != sealed {
			t.Errorf("%s shows %+v, %v", s.name, j, err)
		}
		page, err := s.Jobs(t.Context(), node.JobQuery{Limit: 10, Name: "plan"})
		if found := len(page.Items); err != nil || (found == 1) != (s == a) {
			t.Errorf("%s finds %d by name, %v", s.name, found, err)
		}
	}
	b.handler.end(id, executor.Result{})
	a.await(t, func(s *fsm.State) bool { j, _ := s.Job(job); return j.State == fsm.TaskSucceeded })
	if got := ask("site-2", 1, ref); got != (seal.Answer{Refusal: seal.NotAssigned}) {
		t.Errorf("after its end: %+v", got)
	}
}

// TestManyKeys: a site that asks for more keys than anybody runs gets no more for a while, others do.
func TestManyKeys(t *testing.T) {
	k := &keyKeeper{}
	now := time.Unix(1, 0)
	for range keysAtOnce / 256 {
		if !k.allows("b", 256, now) {
			t.Fatal("refused too early")
		}
	}
	if k.allows("b", 1, now) || !k.allows("c", 1, now) {
		t.Error("the wrong site is refused")
	}
	if now = now.Add(time.Second); !k.allows("b", keysPerSecond, now) || k.allows("b", 1, now) {
		t.Error("after a second there are not as many as said")
	}
}

// TestOwnerOutOfReach: the site that cannot ask hands the task back and says why; the task runs where the owner is
// reached, or there once it is.
func TestOwnerOutOfReach(t *testing.T) {
	sites := startSites(t, 1, 1, 1)
	a, b, c := sites[0], sites[1], sites[2]
	b.unreached.Store(true)
	job := a.accept(t, `{"command":["run"],"sites":{"only":["site-2"]}}`).ID
	said := ""
	a.await(t, func(*fsm.State) bool {
		d, ok := a.cfg.Replica.Feed().LastDecline(job)
		said = d.String()
		return ok
	})
	const want = "site-2 declined it last: no key to what it runs from its owner site-1, which is asked again " +
		"in 2s: connection refused"
	if said != want {
		t.Errorf("said\n%s, want\n%s", said, want)
	}
	if w, err := a.Why(t.Context(), job); err != nil || !strings.HasSuffix(w.Summary, "; "+want) {
		t.Errorf("why: %q, %v", w.Summary, err)
	}
	either := a.accept(t, `{"command":["run"],"sites":{"only":["site-2","site-3"]}}`).ID
	if id := <-c.handler.started; id.Job != either.String() {
		t.Errorf("site-3 runs %s", id)
	}
	b.unreached.Store(false)
	if id := <-b.handler.started; id.Job != job.String() {
		t.Errorf("site-2 runs %s", id)
	}
	for _, s := range a.Plausibility().Sites {
		if s.Site == "site-2" && s.Declined != 0 {
			t.Errorf("held against site-2: %+v", s)
		}
	}
}
