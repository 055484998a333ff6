package broker

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// TestLogsOfUnrecordedTasks: of a task that has ended in a job too large for records of
// its ends, each site tells what it keeps, and a broker that is asked names the sites. It
// said that the task had not started.
func TestLogsOfUnrecordedTasks(t *testing.T) {
	sites, finds := findingSites(t, 3)
	asked, ran := sites[0], sites[1]
	spec := fmt.Sprintf(`{"command":["true"],"count":%d,"sites":{"only":["site-2"]}}`, fsm.DetailTasks+1)
	job := asked.accept(t, spec).ID
	first := <-ran.handler.started
	ran.handler.end(first, executor.Result{Run: 1})
	for _, s := range sites {
		s.await(t, func(st *fsm.State) bool {
			v, ok := st.Job(job)
			return ok && v.Counts[fsm.TaskSucceeded] == 1
		})
	}

	q := node.LogQuery{Job: job, Task: first.Task, Stream: "stdout"}
	for _, s := range sites { // the one that ran it has to ask the others, too: there may be a later attempt
		var anywhere *node.AnywhereError
		if _, err := s.Logs(t.Context(), q); !errors.As(err, &anywhere) || anywhere.Query.Attempt != 0 ||
			!strings.Contains(anywhere.What, job.String()) {
			t.Fatalf("at %s: %v", s.name, err)
		}
		list := s.KeptOutputs(job, []uint32{first.Task, first.Task + 9})
		if s != ran && len(list) > 0 || s == ran && (len(list) != 1 ||
			list[0] != node.KeptOutput{Position: first.Task, Attempt: 1}) {
			t.Errorf("%s keeps %+v", s.name, list)
		}
	}
	here := node.LogQuery{Job: job, Task: first.Task, Attempt: 1, Stream: "stdout", Here: true}
	r, err := ran.Logs(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(r); !strings.Contains(string(text), first.String()) {
		t.Errorf("the log is of another attempt: %s", text)
	}
	q.Attempt = 1 // as a user names it
	var anywhere *node.AnywhereError
	if _, err = asked.Logs(t.Context(), q); !errors.As(err, &anywhere) || anywhere.Query.Attempt != 1 {
		t.Errorf("the first attempt: %v", err)
	}
	q.Task, q.Attempt = fsm.DetailTasks, 0
	if _, err = asked.Logs(t.Context(), q); !errors.Is(err, node.ErrNotFound) || !strings.Contains(err.Error(), "not started") {
		t.Errorf("one that waits: %v", err)
	}
	idle := asked.accept(t, `{"command":["true"],"sites":{"only":["site-9"]}}`).ID
	if err = asked.Cancel(t.Context(), idle); err != nil {
		t.Fatal(err)
	}
	_, err = asked.Logs(t.Context(), node.LogQuery{Job: idle, Stream: "stdout"})
	if !errors.Is(err, node.ErrNotFound) || !strings.Contains(err.Error(), "never started, it is cancelled") {
		t.Errorf("one that was cancelled before: %v", err)
	}

	for trouble, want := range map[error]error{
		executor.ErrDamaged:    node.ErrOutputDamaged,
		executor.ErrUnreadable: node.ErrOutputUnreadable,
	} {
		finds[ran.name].trouble = trouble
		if list := ran.KeptOutputs(job, []uint32{first.Task}); len(list) != 1 || !errors.Is(list[0].Err, want) {
			t.Errorf("%v: %+v", trouble, list)
		}
		if _, err = ran.Logs(t.Context(), here); !errors.Is(err, want) || !strings.Contains(err.Error(), "site-2") {
			t.Errorf("%v: %v", trouble, err)
		}
	}
	finds[ran.name].trouble, finds[ran.name].removed = nil, true
	if list := ran.KeptOutputs(job, []uint32{first.Task}); len(list) != 1 ||
		!errors.Is(list[0].Err, node.ErrOutputGone) {
		t.Errorf("once it was removed: %+v", list)
	}
}
