package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// maxFailed is how many failed tasks a job's answer names.
	maxFailed = 10
	// taskPages bounds the looks for the tasks of one answer.
	taskPages = 100
)

// badStates selects the tasks that a job's answer names.
var badStates = fsm.TaskStates(0).With(fsm.TaskFailed).With(fsm.TaskLost)

// statesParam documents the parameter that taskQuery reads.
func statesParam() *huma.Param {
	p := queryParam("state", huma.TypeArray, "only tasks in this state; may be repeated")
	p.Schema.Items = &huma.Schema{Type: huma.TypeString}
	return p
}

// tasks pages by the next index, which is never 0 while there is more.
func (s *Server) tasks(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	q, err := taskQuery(r)
	if err != nil {
		return err
	}
	if err = s.awaitJob(w, r, id); err != nil {
		return err
	}
	tasks, next, err := s.broker.FindTasks(r.Context(), id, q)
	if err != nil {
		return err
	}
	page := wire.List[wire.Task]{Items: tasksOf(tasks), Freshness: freshness(r.Context())}
	if next != 0 {
		page.Next = strconv.FormatUint(uint64(next), 10)
	}
	return writeJSON(w, http.StatusOK, page)
}

func tasksOf(tasks []node.Task) []wire.Task {
	out := make([]wire.Task, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, taskOf(t))
	}
	return out
}

// taskQuery reads which tasks a request is for.
func taskQuery(r *http.Request) (q node.TaskQuery, err error) {
	limit, err := queryUint(r, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return q, err
	}
	q.Limit = int(limit)
	if q.From, err = taskCursor(r); err != nil {
		return q, err
	}
	if q.States, err = taskStates(r.URL.Query()["state"]); err != nil {
		return q, err
	}
	q.Only, err = queryIndices(r)
	return q, err
}

// taskStates reads names of task states; an empty one is as if it were not there.
func taskStates(names []string) (states fsm.TaskStates, err error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		state, known := fsm.ParseTaskState(name)
		if !known {
			return 0, problem.BadQuery("state", name, "must be one of "+fsm.TaskStateNames())
		}
		states = states.With(state)
	}
	return states, nil
}

// queryIndices reads a set of indices; absent or empty is the empty set.
// queryIndices reads the tasks that a request names.
func queryIndices(r *http.Request) (jobspec.Indices, error) {
	const name = "tasks"
	text := r.URL.Query().Get(name)
	if text == "" {
		return jobspec.Indices{}, nil
	}
	x, err := jobspec.ParseIndices(text)
	if err != nil {
		return x, problem.BadQuery(name, text, err.Error())
	}
	return x, nil
}

func taskCursor(r *http.Request) (uint32, error) {
	if r.URL.Query().Get("cursor") == "" { // as a list's last page gives it
		return 0, nil
	}
	from, err := queryUint(r, "cursor", 0, 0, fsm.MaxCount)
	return uint32(from), err
}

// firstFailed returns the first tasks of a job that failed or were lost. One that
// the job's record goes away beneath has none.
func (s *Server) firstFailed(ctx context.Context, job node.Job) ([]wire.Task, error) {
	if job.Counts["failed"]+job.Counts["lost"] == 0 {
		return nil, nil
	}
	tasks, _, err := s.findTasks(ctx, job.ID, node.TaskQuery{States: badStates}, maxFailed)
	if errors.Is(err, node.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tasksOf(tasks), nil
}

// findTasks asks on, page by page, until so many tasks are found or there are no
// more; next is where to go on, 0 = nowhere.
func (s *Server) findTasks(ctx context.Context, id fsm.JobID, q node.TaskQuery, most int) (all []node.Task, next uint32, err error) {
	for range taskPages {
		q.Limit = most - len(all)
		tasks, next, err := s.broker.FindTasks(ctx, id, q)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, tasks...)
		if q.From = next; next == 0 || len(all) == most {
			break
		}
	}
	return all, q.From, nil
}
