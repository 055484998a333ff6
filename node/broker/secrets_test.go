package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/seal"
)

// rotate starts a site's broker again, with another secret in front of those that it has.
func (s *testSite) rotate(t *testing.T) {
	t.Helper()
	list, err := s.journal.Secrets()
	if err == nil {
		err = s.journal.SetSecrets(slices.Concat([][32]byte{{42}}, list))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	s.start(t)
}

// A broker whose secret was replaced while jobs of it are open gives their keys as before, and seals what comes then
// with the new one. Once the last job of the old one is over and not shown any more, the old one is forgotten.
func TestReplacedSecretServesOpenJobs(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	const only = `"sites":{"only":["site-2"]}`
	job := a.accept(t, `{"name":"old","command":["secret"],`+only+`}`).ID
	id := <-b.handler.started
	ref := command.AttemptRef{Job: job, Task: id.Task, Attempt: id.Attempt, Token: id.Token}
	waits := a.accept(t, `{"name":"waits","command":["secret"],`+only+`}`).ID
	a.await(t, func(s *fsm.State) bool { _, ok := s.Job(waits); return ok })
	var told [][]bool // nobody else asks within a minute
	a.drop = func(used []bool) error { told = append(told, used); return nil }
	a.handler = a.handler.reopen()
	a.rotate(t)

	if got := a.Keys(t.Context(), "site-2", 1, []command.AttemptRef{ref})[0]; got.Refusal != seal.Granted {
		t.Fatalf("the key of an open job of before: %s", got.Refusal)
	}
	b.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	second := <-b.handler.started // for which site-2 has to ask the broker of now
	if got := b.handler.task(second); second.Job != waits.String() || got.Command[0] != "secret" {
		t.Fatalf("site-2 runs %+v", got)
	}
	next := a.accept(t, `{"name":"new","command":["secret"],`+only+`}`).ID
	a.await(t, func(s *fsm.State) bool { _, ok := s.Job(next); return ok })
	used, err := a.secrets.used()
	if err != nil || !slices.Equal(used, []bool{true, true}) || a.secrets.drop() || told != nil {
		t.Fatalf("with jobs of before: used %v, %v; told %v", used, err, told)
	}
	b.handler.end(second, executor.Result{Started: time.Now(), Run: time.Second})
	third := <-b.handler.started
	p := command.DefaultParams()
	p.RetainJobs = 0 // nothing that has ended is shown; SetParams takes no less than 1000
	if r, err := a.order(t.Context(), "retain nothing", &command.SetParams{Params: p}); err != nil || r.Code != command.OK {
		t.Fatal(r.Code, err)
	}
	a.await(t, func(s *fsm.State) bool {
		_, old := s.Job(job)
		_, waited := s.Job(waits)
		return !old && !waited
	})
	if !a.secrets.drop() || len(told) != 1 || !slices.Equal(told[0], []bool{true, false}) {
		used, err = a.secrets.used()
		t.Errorf("without: used %v, %v; told %v", used, err, told)
	}
	b.handler.end(third, executor.Result{Started: time.Now(), Run: time.Second})
}
