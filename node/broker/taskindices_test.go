package broker

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestTasksKeepTheirIndices: at home and in the federation, programs, lists, logs
// and events have the indices that the job names.
func TestTasksKeepTheirIndices(t *testing.T) {
	for name, cores := range map[string]int64{"home": 3, "federation": 2} {
		t.Run(name, func(t *testing.T) {
			a := startSites(t, cores)[0]
			from := a.Feed().Now()
			ans := a.accept(t, `{"command":["x"],"env":{"K":"v"},"indices":"5,17,18"}`)
			if want := map[string]string{"home": node.DurableSite, "federation": node.DurableFederation}[name]; ans.Durability != want {
				t.Fatalf("durability %s", ans.Durability)
			}
			for range cores {
				id := <-a.handler.started
				a.handler.mu.Lock()
				env := a.handler.states[id].Env
				a.handler.mu.Unlock()
				want := [...]string{"5", "17", "18"}[id.Task]
				if env[executor.IndexVar] != want || env["K"] != "v" {
					t.Errorf("the program of %s is told %v, want index %s", id, env, want)
				}
				if id.Task == 1 {
					a.handler.end(id, executor.Result{ExitCode: 3, Started: time.Now(), Run: time.Millisecond})
				}
			}
			awaitEnd(t, a, ans.ID, from, 17)
			q := node.TaskQuery{Limit: 10, States: fsm.TaskStates(0).With(fsm.TaskFailed)}
			if got := found(t, a, ans.ID, q); got != "17 " {
				t.Errorf("failed: %s", got)
			}
			only, _ := jobspec.ParseIndices("6-17,40")
			if got := found(t, a, ans.ID, node.TaskQuery{Limit: 10, Only: only}); got != "17 " {
				t.Errorf("only 6-17,40: %s", got)
			}
			if got := found(t, a, ans.ID, node.TaskQuery{Limit: 1}); got != "5 then 17 then 18 " {
				t.Errorf("page by page: %s", got)
			}
			if got := found(t, a, ans.ID, node.TaskQuery{Limit: 9, From: 6}); got != "17 18 " {
				t.Errorf("from 6 on: %s", got)
			}
			r, err := a.Logs(t.Context(), node.LogQuery{Job: ans.ID, Task: 17, Stream: "stdout"})
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(r); !strings.HasPrefix(string(text), "stdout of "+ans.ID.String()+"-1-") {
				t.Errorf("log of 17: %s", text)
			}
			if _, err := a.Logs(t.Context(), node.LogQuery{Job: ans.ID, Task: 6}); err == nil ||
				!strings.Contains(err.Error(), "has no task 6") {
				t.Errorf("log of 6: %v", err)
			}
			if err := a.Cancel(t.Context(), ans.ID); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestEventsOfGapsAreApart: tasks that end alike are told of by ranges of indices.
func TestEventsOfGapsAreApart(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	from := a.Feed().Now()
	id := a.accept(t, `{"command":["x"],"resources":{"cpu":2},"indices":"5-7,17,40-60"}`).ID
	if err := a.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var got []string
	sub := a.Events(from, node.EventFilter{Job: id, Kinds: map[fsm.EventKind]bool{fsm.EventTaskEnded: true}})
	for len(got) < 3 {
		events, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, fmt.Sprintf("%d+%d", e.Task, e.Count))
		}
	}
	if fmt.Sprint(got) != "[5+3 17+1 40+21]" {
		t.Error(got)
	}
}

// awaitEnd waits for the event of a task's end.
func awaitEnd(t *testing.T, s *testSite, id command.JobID, from node.EventID, index uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sub := s.Events(from, node.EventFilter{Job: id, Kinds: map[fsm.EventKind]bool{fsm.EventTaskEnded: true}})
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Task == index {
				return
			}
		}
	}
}

// found lists what a query finds, page by page.
func found(t *testing.T, s *testSite, id command.JobID, q node.TaskQuery) (list string) {
	t.Helper()
	for {
		tasks, next, err := s.FindTasks(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tasks {
			list += fmt.Sprint(tasks[i].Index) + " "
		}
		if next == 0 {
			return list
		}
		q.From = next
		list += "then "
	}
}
