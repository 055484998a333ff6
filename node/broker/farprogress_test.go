package broker

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/askprogress"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// dialProgress connects to another broker of the group.
func (s *testSite) dialProgress(_ context.Context, site, _ string) (net.Conn, error) {
	b, ok := s.brokers.Load(site)
	if !ok || s.unreached.Load() {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	teller := askprogress.Server{Answer: b.(*Broker).GiveProgress} //nolint:forcetypeassert // it holds no others
	go teller.Serve(server, relay.Preamble{Site: s.name})
	return client, nil
}

// TestOwnerSeesHowFarFilesAre: while another site brings the files of a task, its owner's broker tells how far they
// are, in the task and to those who ask why it does not run; if that site does not answer, that it prepares the start.
// Another site than the owner is told nothing.
func TestOwnerSeesHowFarFilesAre(t *testing.T) {
	const staging = "staging 0 of 1 files, 0 B of 5 B"
	x := startTravel(t, make(chan struct{}))
	x.a.unreached.Store(true)
	job := x.a.accept(t, x.job()).ID
	<-x.asked
	reason := func() (string, askprogress.Ref) {
		t.Helper()
		tasks, _, err := x.a.FindTasks(t.Context(), job, node.TaskQuery{Limit: 1})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%+v, %v", tasks, err)
		}
		v := tasks[0]
		return v.Reason, askprogress.Ref{Num: job.Num, Task: v.Position, Attempt: v.Attempt, Token: v.Token}
	}
	why, ref := reason()
	if why != "site-2 prepares its start, and does not say how far it is" {
		t.Errorf("without an answer: %q", why)
	}
	x.a.unreached.Store(false)
	x.a.stop(t) // it forgets that it had no answer
	x.a.start(t)
	if why, _ = reason(); why != staging {
		t.Errorf("its owner's broker says %q", why)
	}
	w, err := x.a.Why(t.Context(), job)
	if err != nil || !strings.HasSuffix(w.Summary, "; task 0 at site-2: "+staging) {
		t.Errorf("why: %q, %v", w.Summary, err)
	}
	for from, want := range map[string]string{"site-1": staging, "site-2": "", "site-3": "", "": ""} {
		if got := x.b.GiveProgress(from, []askprogress.Ref{ref}); len(got) != 1 || got[0] != want {
			t.Errorf("%q is told %q", from, got)
		}
	}
	for _, other := range []askprogress.Ref{
		{Num: ref.Num + 1, Task: ref.Task, Attempt: ref.Attempt, Token: ref.Token},
		{Num: ref.Num, Task: ref.Task, Attempt: ref.Attempt, Token: ref.Token + 1},
	} {
		if got := x.b.GiveProgress("site-1", []askprogress.Ref{other}); got[0] != "" {
			t.Errorf("of %+v it is told %q", other, got)
		}
	}
	close(x.gate)
	<-x.b.handler.started
	if got := x.b.GiveProgress("site-1", []askprogress.Ref{ref}); got[0] != "" {
		t.Errorf("of one that has started: %q", got)
	}
}
