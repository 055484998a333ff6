package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// tasksOf names some tasks of a job.
func tasksOf(t *testing.T, id command.JobID, text string) node.CancelTarget {
	t.Helper()
	if text == "" {
		return node.CancelTarget{Job: id}
	}
	x, err := jobspec.ParseIndices(text)
	if err != nil {
		t.Fatal(err)
	}
	return node.CancelTarget{Job: id, Tasks: x}
}

// TestCancelTasks: single tasks end, at home and in the federation, by their
// indices; the others go on.
func TestCancelTasks(t *testing.T) {
	for name, cores := range map[string]int64{"home": 3, "federation": 1} {
		t.Run(name, func(t *testing.T) {
			a := startSites(t, cores)[0]
			from := a.Feed().Now()
			id := a.accept(t, `{"command":["x"],"indices":"5,17,18"}`).ID
			for range cores {
				<-a.handler.started
			}
			errs := a.CancelAll(t.Context(), []node.CancelTarget{
				tasksOf(t, id, "17-18"), tasksOf(t, id, "6"),
				tasksOf(t, command.JobID{Site: "site-1", Num: 99}, "0"),
			})
			if errs[0] != nil || !errors.Is(errs[1], node.ErrNotFound) || !strings.Contains(errs[1].Error(), "no task 6") ||
				!errors.Is(errs[2], node.ErrNotFound) {
				t.Fatalf("%v", errs)
			}
			if name == "home" {
				for range 2 {
					a.handler.end(<-a.handler.stopped, executor.Result{Cause: executor.Stopped})
				}
			}
			awaitEnd(t, a, id, from, 17)
			awaitEnd(t, a, id, from, 18)
			if got := found(t, a, id, node.TaskQuery{
				Limit:  9,
				States: fsm.TaskStates(0).With(fsm.TaskCancelled),
			}); got != "17 18 " {
				t.Errorf("cancelled: %s", got)
			}
			if got := found(t, a, id, node.TaskQuery{
				Limit:  9,
				States: fsm.TaskStates(0).With(fsm.Running).With(fsm.Assigned),
			}); got != "5 " {
				t.Errorf("going on: %s", got)
			}
			if err := a.CancelAll(t.Context(), []node.CancelTarget{tasksOf(t, id, "17")})[0]; !errors.Is(err,
				node.ErrEnded) {
				t.Errorf("again: %v", err)
			}
			if err := a.CancelAll(t.Context(), []node.CancelTarget{tasksOf(t, id, "0-1000")})[0]; !errors.Is(err,
				node.ErrFull) || !strings.Contains(err.Error(), "in parts") {
				t.Errorf("too many: %v", err)
			}
			if errs := a.CancelAll(t.Context(), []node.CancelTarget{
				tasksOf(t, id, ""),
				tasksOf(t, id, "5"),
			}); errs[0] != nil {
				t.Errorf("the whole: %v", errs)
			}
		})
	}
}

// TestRerunKeepsIndices: the new job has the tasks that failed, by their indices.
func TestRerunKeepsIndices(t *testing.T) {
	a := startSites(t, 3)[0]
	from := a.Feed().Now()
	id := a.accept(t, `{"name":"n","command":["x"],"labels":{"k":"v"},"indices":"5,17,18"}`).ID
	for range 3 {
		run := <-a.handler.started
		a.handler.end(run, executor.Result{ExitCode: int(run.Task) % 2})
	}
	for _, index := range []uint32{5, 17, 18} {
		awaitEnd(t, a, id, from, index)
	}
	bad := node.TaskQuery{States: fsm.TaskStates(0).With(fsm.TaskFailed).With(fsm.TaskLost)}
	spec, err := a.Rerun(t.Context(), id, bad)
	if err != nil || spec.Indices.String() != "17" || spec.Count != 1 || spec.Name != "n" || spec.Labels["k"] != "v" {
		t.Errorf("%+v, %v", spec, err)
	}
	if spec, err = a.Rerun(t.Context(), id, node.TaskQuery{Only: tasksOf(t, id, "5,17-18").Tasks}); err != nil ||
		spec.Indices.String() != "5,17-18" {
		t.Errorf("named: %s, %v", spec.Indices, err)
	}
	if _, err = a.Rerun(t.Context(), id, node.TaskQuery{Only: tasksOf(t, id, "5,6").Tasks}); !errors.Is(err,
		node.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err = a.Rerun(t.Context(), id, node.TaskQuery{States: fsm.TaskStates(0).With(fsm.Queued)}); !errors.Is(err,
		node.ErrNothing) {
		t.Errorf("none: %v", err)
	}
	if _, err = a.Rerun(context.Background(), command.JobID{Site: "site-1", Num: 99}, bad); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
}

// TestRerunOfHeldTasksWaitsForNothing: a job has waited for another, and now holds tasks since only one may run at a
// time: the new job does not wait for what has ended.
func TestRerunOfHeldTasksWaitsForNothing(t *testing.T) {
	a := startSites(t, 3)[0]
	a.await(t, func(s *fsm.State) bool { return s.Version() >= command.GatesVersion })
	first := a.accept(t, `{"command":["x"]}`).ID
	run := <-a.handler.started
	job := a.accept(t, fmt.Sprintf(`{"command":["x"],"count":3,"parallel":1,"after":[{"job":%q}]}`, first)).ID
	all := node.TaskQuery{Only: tasksOf(t, job, "0-2").Tasks}
	if spec, err := a.Rerun(t.Context(), job, all); err != nil || len(spec.After) != 1 {
		t.Errorf("while it waits: after %v, %v", spec.After, err)
	}
	a.handler.end(run, executor.Result{})
	a.await(t, func(s *fsm.State) bool { j, _ := s.Job(job); return j.Counts[fsm.Held] == 2 })
	if spec, err := a.Rerun(t.Context(), job, all); err != nil || len(spec.After) != 0 || spec.Count != 3 {
		t.Errorf("once it has begun: after %v, %v", spec.After, err)
	}
}
