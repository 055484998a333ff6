package node

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

func TestIndicesAreReadInAnyOrder(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "3,17,40-60": "3,17,40-60", "40–60,3": "3,40-60", "5,4,3,3": "3-5", "1-4,2-9": "1-9", "999999": "999999",
	} {
		x, err := ParseIndices(text)
		if err != nil || x.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, x, err, want)
		}
	}
	for _, text := range []string{"", ",", "1,", "a", "-1", "5-", "9-3", "1000000", "0-1000000", "1 ", "+1", "1-2-3", strings.Repeat("1,", MaxIndexRanges) + "1"} {
		if x, err := ParseIndices(text); err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 120 {
			t.Errorf("%.20q: %s, %v", text, x, err)
		}
	}
}

// TestIndicesHaveAPlaceEach: positions and indices are each other's inverse.
func TestIndicesHaveAPlaceEach(t *testing.T) {
	x, err := ParseIndices("3,17,40-60,62,100-101")
	if err != nil || x.Len() != 26 {
		t.Fatalf("%d, %v", x.Len(), err)
	}
	n := numbering{x, x.Len()}
	position := uint32(0)
	for index := range uint32(120) {
		if got := n.position(index); got != position {
			t.Errorf("%d tasks are below %d, want %d", got, index, position)
		}
		if !x.Has(index) {
			continue
		}
		if n.index(position) != index {
			t.Errorf("at %d is %d, want %d", position, n.index(position), index)
		}
		position++
	}
	if got, length := n.run(4); got != 42 || length != 19 {
		t.Errorf("from %d on %d", got, length)
	}
	if (Indices{}).Has(0) || (Indices{}).Len() != 0 || n.index(99) != 99 {
		t.Error("beyond the set")
	}
}

// TestForeignPayloadsNumberNothingTwice: a payload that no broker wrote has no
// indices, and ends no broker.
func TestForeignPayloadsNumberNothingTwice(t *testing.T) {
	for _, payload := range []string{`{"indices":"`, `{"indices":"5`, `{"indices":"x"}`, `{"indices":"5,6"}`, `{"indices":""}`, `{}`, ``} {
		if n := numberingOf([]byte(payload), 3); n.index(2) != 2 || n.position(9) != 3 {
			t.Errorf("%s: %+v", payload, n)
		}
	}
	js := fsm.JobSpec{Count: 3, Payload: []byte(`{"indices":"5,6","command":["a"]}`)}
	if s, err := SpecOf(js); err != nil || s.Indices.Len() != 0 || s.Count != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSpecsWithIndices(t *testing.T) {
	for _, text := range []string{
		`{"command":["a"],"indices":"3,17,40-60"}`, `{"command":["a"],"indices":"40-60,17,3","count":23}`, `{"indices":"3,17,40-60","labels":{"k":"v"},"name":"n","command":["a"]}`,
	} {
		s, err := ParseSpec([]byte(text))
		if err != nil || s.Count != 23 || s.Indices.String() != "3,17,40-60" {
			t.Fatalf("%s: %+v, %v", text, s, err)
		}
		js := s.JobSpec(1, 2)
		if back, err := SpecOf(js); err != nil || fmt.Sprint(back) != fmt.Sprint(s) {
			t.Errorf("%s: through the state %+v, %v", text, back, err)
		}
		if n := numberingOf(js.Payload, js.Count); n.index(2) != 40 {
			t.Errorf("%s: at 2 is %d", js.Payload, n.index(2))
		}
		if got := MatchLabels(js.Payload, map[string]string{"k": "v"}); got != (s.Labels != nil) {
			t.Errorf("%s: labels match: %t", js.Payload, got)
		}
		var again Spec
		if body, err := s.MarshalJSON(); err != nil || again.UnmarshalJSON(body) != nil || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for text, field := range map[string]string{
		`{"command":["a"],"indices":"3,4","count":3}`: "count", `{"command":["a"],"indices":"x"}`: "indices", `{"command":["a"],"indices":3}`: "indices",
	} {
		if _, err := ParseSpec([]byte(text)); err == nil || err.(*SpecError).Field != field { //nolint:errorlint // it is documented
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTasksKeepTheirIndices: at home and in the federation, programs, lists, logs
// and events have the indices that the job names.
func TestTasksKeepTheirIndices(t *testing.T) {
	for name, cores := range map[string]int64{"home": 3, "federation": 2} {
		t.Run(name, func(t *testing.T) {
			a := startSites(t, cores)[0]
			from := a.Feed().Now()
			ans := a.accept(t, `{"command":["x"],"env":{"K":"v"},"indices":"5,17,18"}`)
			if want := map[string]string{"home": DurableSite, "federation": DurableFederation}[name]; ans.Durability != want {
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
			q := TaskQuery{Limit: 10, States: fsm.TaskStates(0).With(fsm.TaskFailed)}
			if got := found(t, a, ans.ID, q); got != "17 " {
				t.Errorf("failed: %s", got)
			}
			only, _ := ParseIndices("6-17,40")
			if got := found(t, a, ans.ID, TaskQuery{Limit: 10, Only: only}); got != "17 " {
				t.Errorf("only 6-17,40: %s", got)
			}
			if got := found(t, a, ans.ID, TaskQuery{Limit: 1}); got != "5 then 17 then 18 " {
				t.Errorf("page by page: %s", got)
			}
			if got := found(t, a, ans.ID, TaskQuery{Limit: 9, From: 6}); got != "17 18 " {
				t.Errorf("from 6 on: %s", got)
			}
			r, err := a.Logs(t.Context(), LogQuery{Job: ans.ID, Task: 17, Stream: "stdout"})
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(r); !strings.HasPrefix(string(text), "stdout of "+ans.ID.String()+"-1-") {
				t.Errorf("log of 17: %s", text)
			}
			if _, err := a.Logs(t.Context(), LogQuery{Job: ans.ID, Task: 6}); err == nil || !strings.Contains(err.Error(), "has no task 6") {
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
	sub := a.Events(from, EventFilter{Job: id, Kinds: map[fsm.EventKind]bool{fsm.EventTaskEnded: true}})
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
func awaitEnd(t *testing.T, s *testSite, id fsm.JobID, from EventID, index uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	sub := s.Events(from, EventFilter{Job: id, Kinds: map[fsm.EventKind]bool{fsm.EventTaskEnded: true}})
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
func found(t *testing.T, s *testSite, id fsm.JobID, q TaskQuery) (list string) {
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
