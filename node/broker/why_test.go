package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/sched"
)

// TestWhyOfHeldTasks: the owner's broker says why tasks are held, others that they are, and by whom.
func TestWhyOfHeldTasks(t *testing.T) {
	sites := startSites(t, 2, 2)
	a, b := sites[0], sites[1]
	a.await(t, func(s *fsm.State) bool { return s.Version() >= command.GatesVersion })
	job := a.accept(t, `{"command":["sleep"],"count":5,"parallel":1}`).ID
	for _, s := range sites {
		s.await(t, func(s *fsm.State) bool {
			j, _ := s.Job(job)
			return j.Counts[fsm.Held] == 4 && j.Counts[fsm.Running] == 1
		})
	}
	for s, want := range map[*testSite]string{
		a: "tasks held: 4 since at most 1 of the job run at a time", b: "tasks held: 4, until the broker of site-1 releases them",
	} {
		if w, err := s.Why(t.Context(), job); err != nil || w.Summary != want || w.Estimate.Unknown != "its tasks are held" {
			t.Errorf("%s: %q, %v", s.name, w.Summary, err)
		}
	}
}

// TestWhyAtAnyBroker: a federation job is explained alike by both brokers, a home
// job by its owner's only.
func TestWhyAtAnyBroker(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	home := a.accept(t, `{"command":["sleep"]}`)
	// Else site-1 may get a task of the bag before the state knows that its core is taken, and declines it.
	a.await(t, func(s *fsm.State) bool { v, _ := s.Site("site-1"); return v.Home.MilliCPU == 1000 })
	bag := a.accept(t, `{"command":["sleep"],"count":5}`)
	a.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] == 4 })
	b.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] == 4 })
	for _, s := range sites {
		w, err := s.Why(t.Context(), bag.ID)
		if err != nil || w.Waiting != 4 || len(w.Sites) != 2 {
			t.Fatalf("%s: %+v %v", s.name, w, err)
		}
		for _, x := range w.Sites {
			if x.Why != fsm.HinderedFull || !strings.Contains(x.Text, "short of 1 core; the next room is this job's") {
				t.Errorf("%s of %s: %s", s.name, x.Site, x.Text)
			}
		}
		if !strings.Contains(w.Summary, "it is next") || w.Estimate.Unknown == "" {
			t.Errorf("%s: %q %+v", s.name, w.Summary, w.Estimate)
		}
	}
	if w, err := a.Why(t.Context(), home.ID); err != nil || w.View != nil || !strings.Contains(w.Summary, "none of its tasks waits") {
		t.Errorf("home: %+v %v", w, err)
	}
	var elsewhere *node.ElsewhereError
	if _, err := b.Why(t.Context(), home.ID); !errors.As(err, &elsewhere) || elsewhere.Site != "site-1" {
		t.Errorf("a home job of another site: %v", err)
	}
	for _, id := range []command.JobID{{Site: "site-1", Num: 999}, {Site: "nobody", Num: 1}} {
		if _, err := b.Why(t.Context(), id); id.Site == "nobody" && !errors.Is(err, node.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := a.Why(t.Context(), command.JobID{Site: "site-1", Num: 999}); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestWhyWhileTheCoreHangs: what the state says of a job is told all the same.
func TestWhyWhileTheCoreHangs(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	bag := a.accept(t, `{"command":["sleep"],"count":5}`)
	b.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] > 0 })
	goOn := make(chan struct{})
	defer close(goOn)
	b.post(core.AskEvent(func(*core.Core) { <-goOn }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if w, err := b.Why(ctx, bag.ID); err != nil || w.Waiting == 0 || ctx.Err() != nil {
		t.Errorf("%+v %v", w, err)
	}
}

// TestDryRunAcceptsNothing: it tells what a submission would, and leaves no trace.
func TestDryRunAcceptsNothing(t *testing.T) {
	sites := startSites(t, 2, 1)
	a := sites[0]
	ask := func(json string, strict bool) (node.Why, error) {
		spec, err := jobspec.ParseSpec([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return a.DryRun(context.Background(), node.Request{Spec: spec, Strict: strict})
	}
	if w, err := ask(`{"command":["x"]}`, false); err != nil || w.State != "running" || w.Job.Num != 0 {
		t.Fatalf("at home: %+v %v", w, err)
	}
	w, err := ask(`{"command":["x"],"count":9}`, false)
	if err != nil || w.Waiting != 9 || !strings.Contains(w.Summary, "3 tasks of 9 would start at once") || w.Estimate.Unknown != "" {
		t.Fatalf("too many for home: %+v %v", w, err)
	}
	w, err = ask(`{"command":["x"],"resources":{"cpu":7}}`, false)
	if err != nil || w.Sites[0].Why != fsm.HinderedShape || w.Estimate.Unknown == "" {
		t.Fatalf("too wide: %+v %v", w, err)
	}
	if _, err = ask(`{"command":["x"],"resources":{"cpu":7}}`, true); !errors.Is(err, node.ErrUnfit) {
		t.Fatalf("strict: %v", err)
	}
	if first := a.accept(t, `{"command":["x"]}`); first.ID.Num != 1 {
		t.Fatalf("the questions used numbers: %v", first.ID)
	}
	if j, err := a.Jobs(t.Context(), node.JobQuery{Limit: 10}); err != nil || len(j.Items) != 1 {
		t.Fatalf("%d jobs %v", len(j.Items), err)
	}
}

// TestDryRunOfJobsThatWait: it says what a job would wait for, or that it would be cancelled, and refuses what a
// submission would.
func TestDryRunOfJobsThatWait(t *testing.T) {
	a := startSites(t, 1)[0]
	first := a.accept(t, sleepJob)
	running := <-a.handler.started
	ask := func(after string) (node.Why, error) {
		spec, err := jobspec.ParseSpec([]byte(`{"command":["x"],"count":2,"after":[` + after + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		return a.DryRun(t.Context(), node.Request{Spec: spec})
	}
	w, err := ask(`{"job":"site-1.1"}`)
	if want := "waits for " + first.ID.String() + " to succeed"; err != nil || w.State != "queued" || w.Waiting != 2 ||
		w.Summary != want || w.Estimate.Unknown == "" {
		t.Errorf("%+v, %v", w, err)
	}
	for after, want := range map[string]string{
		`{"job":"site-1.1","when":"each"}`: "must have as many tasks", `{"job":"site-1.77"}`: "names no job that was accepted", `{"job":"#1"}`: "names a line",
		`{"job":"site-2.1"}`: "must be a job of this broker's site",
	} {
		if _, err := ask(after); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", after, err, want)
		}
	}
	a.handler.end(running, executor.Result{Started: time.Now(), Run: time.Second, ExitCode: 1})
	for w.State != "cancelled" {
		if w, err = ask(`{"job":"site-1.1"}`); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if want := "cancelled at once: it waited in vain for site-1.1"; !strings.Contains(w.Summary, want) || w.Waiting != 0 {
		t.Errorf("%+v, want %s", w, want)
	}
	if w, err = ask(`{"job":"site-1.1","when":"any"}`); err != nil || strings.Contains(w.Summary, "waits for site-1.1") {
		t.Errorf("%+v, %v", w, err)
	}
	if next := a.accept(t, sleepJob); next.ID.Num != 2 {
		t.Errorf("the questions used numbers: %v", next.ID)
	}
}

// TestPolicyByWaits: a running federation goes by projected waits, and every broker words whose turn it is.
func TestPolicyByWaits(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	p := a.Params()
	p.Policy = sched.Alone
	if _, err := a.SetParams(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	a.accept(t, `{"command":["sleep"]}`)
	bag := a.accept(t, `{"command":["sleep"],"count":5,"timeout":"60s"}`)
	for _, s := range []*testSite{a, b} {
		s.await(t, func(s *fsm.State) bool {
			j, _ := s.Job(bag.ID)
			return s.Policy() == sched.Alone && j.Counts[fsm.Queued] == 4
		})
	}
	other := b.accept(t, `{"command":["sleep"],"timeout":"60s"}`)
	a.await(t, func(s *fsm.State) bool { _, ok := s.Job(other.ID); return ok })
	w, err := a.Why(t.Context(), bag.ID)
	if err != nil || !strings.Contains(w.Turn, " longer than they would alone") && !strings.Contains(w.Turn, " less than they would alone") {
		t.Errorf("%q %v", w.Turn, err)
	}
}

// TestDryRunOfTasksThatWait: a job whose tasks would wait for those of another one by one would not begin at once.
func TestDryRunOfTasksThatWait(t *testing.T) {
	a := startSites(t, 1)[0]
	a.await(t, func(s *fsm.State) bool { return s.Version() >= command.GatesVersion })
	first := a.accept(t, `{"command":["sleep"],"count":2}`).ID
	running := <-a.handler.started
	ask := func(when string) node.Why {
		spec, err := jobspec.ParseSpec([]byte(`{"command":["x"],"count":2,"after":[` + when + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		w, err := a.DryRun(t.Context(), node.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	each := fmt.Sprintf(`{"job":%q,"when":"each"}`, first)
	w := ask(each)
	if want := "each task waits for the one at its place of " + first.String(); w.Summary != want || w.Estimate.Unknown == "" {
		t.Errorf("%+v, want %s", w, want)
	}
	other := a.accept(t, `{"command":["sleep"]}`).ID
	w = ask(each + fmt.Sprintf(`,{"job":%q}`, other))
	if want := fmt.Sprintf("waits for %s to succeed; then each task waits for the one at its place of %s", other, first); w.Summary != want {
		t.Errorf("%+v, want %s", w, want)
	}
	a.handler.end(running, executor.Result{Started: time.Now(), Run: time.Second, ExitCode: 1})
	a.handler.end(<-a.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	for !strings.Contains(w.Summary, "which has ended: where that one has not succeeded, the task is cancelled") {
		w = ask(each)
		runtime.Gosched()
	}
}
