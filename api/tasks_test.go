package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// failing is a broker with a job of 200 tasks, of which the odd ones from 101 on
// have failed.
func failing(t *testing.T) *Server {
	t.Helper()
	f := newFake("site-1")
	s := newServer(f)
	if w := ask(s, "POST", "/v1/jobs", js, `{"command":["a"],"count":200}`); w.Code != 202 {
		t.Fatal(w.Body)
	}
	f.tasks = map[uint32]node.Task{}
	for i, code := uint32(101), 3; i < 200; i += 2 {
		f.tasks[i] = node.Task{State: "failed", Attempt: 1, Site: "site-1", ExitCode: &code, Reason: fmt.Sprintf("exited with code %d", code)}
	}
	f.jobs[0].Counts["failed"] = 50
	return s
}

func readAs[T any](t *testing.T, s *Server, path string) (out T) {
	t.Helper()
	w := ask(s, "GET", path, "", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return out
}

// TestFailedTasksAreNamed: a job's answer names the first ten, and its tasks can be
// listed by state.
func TestFailedTasksAreNamed(t *testing.T) {
	s := failing(t)
	job := readAs[wire.Job](t, s, "/v1/jobs/site-1.1")
	if len(job.Failed) != 10 || job.Failed[0].Index != 101 || job.Failed[9].Index != 119 ||
		*job.Failed[0].ExitCode != 3 {
		t.Errorf("%d failed tasks: %+v", len(job.Failed), job.Failed)
	}
	if list := readAs[wire.List[wire.Job]](t, s, "/v1/jobs"); list.Items[0].Failed != nil {
		t.Error("a list names tasks")
	}
	seen := 0
	for cursor := ""; ; {
		page := readAs[wire.List[wire.Task]](t, s, "/v1/jobs/site-1.1/tasks?state=failed&state=lost&limit=20&cursor="+cursor)
		seen += len(page.Items)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != 50 {
		t.Errorf("%d of 50 failed tasks were listed", seen)
	}
}
