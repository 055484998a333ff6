package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestEventsOfARunningFederation follows a home job and one that overflows, at
// both brokers.
func TestEventsOfARunningFederation(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	from := b.Feed().Now()
	here, there := a.Events(from, node.EventFilter{Labels: map[string]string{"k": "v"}}),
		b.Events(from, node.EventFilter{Kinds: map[fsm.EventKind]bool{
			fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskEnded: true, fsm.EventJobEnded: true,
		}})
	const job = `{"command":["true"],"labels":{"k":"v"}}`
	home := a.accept(t, job)
	err := a.cfg.Replica.Await(t.Context(), func(s *fsm.State) bool { // else it may be given the next one, too
		v, _ := s.Site(a.name)
		return v.Exposed.MilliCPU == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	away := a.accept(t, job)
	a.accept(t, `{"command":["true"]}`)
	a.handler.end(<-a.handler.started, executor.Result{})
	b.handler.end(<-b.handler.started, executor.Result{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := map[string]string{}
	for ends := 0; ends < 2; {
		events, err := here.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			e := &events[i]
			if e.At.IsZero() {
				t.Errorf("%s has no date", e.Kind)
			}
			seen[e.Job.String()] += fmt.Sprintf("%s %s;", e.Kind, e.Durability)
			if e.Kind == fsm.EventJobEnded {
				ends++
			}
		}
	}
	for id, want := range map[command.JobID]string{
		home.ID: "job.submitted site;task.assigned site;task.ended site;job.ended site;",
		away.ID: "job.submitted federation;task.assigned federation;task.ended federation;job.ended federation;",
	} {
		if got := strings.ReplaceAll(strings.ReplaceAll(seen[id.String()], "task.started site;", ""), "task.started federation;", ""); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the label lets %v by", seen)
	}
	for {
		events, err := there.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if events[i].Job == home.ID {
				t.Fatalf("%s of a home job at another broker", events[i].Kind)
			}
			if events[i].Job == away.ID && events[i].Kind == fsm.EventJobEnded {
				return
			}
		}
	}
}

// TestHomeJobsMoveReads: what happens to a home job moves no entry, and yet
// wakes a blocking read.
func TestHomeJobsMoveReads(t *testing.T) {
	a := startSites(t, 2)[0]
	answer := a.accept(t, sleepJob)
	id := <-a.handler.started
	entry, home := a.Feed().Moved()
	far := home + 1000 // home moves on below
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	woken := make(chan error, 1)
	go func() { woken <- a.Feed().AwaitMove(ctx, entry+1000, far) }()
	a.handler.end(id, executor.Result{})
	for {
		if err := a.Feed().AwaitMove(ctx, entry+1000, home); err != nil {
			t.Fatal(err)
		}
		j, err := a.Job(ctx, answer.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == "succeeded" {
			break
		}
		_, home = a.Feed().Moved()
	}
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Errorf("a read that waits for much more: %v", err)
	}
}
