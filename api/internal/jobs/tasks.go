package jobs

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// maxFailed is how many failed tasks a job's answer names.
const maxFailed = 10

// badStates selects the tasks that a job's answer names.
var badStates = fsm.TaskStates(0).With(fsm.TaskFailed).With(fsm.TaskLost)

// tasks pages by the next index, which is never 0 while there is more.
func (j *Jobs) tasks(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	q, err := taskQuery(r)
	if err != nil {
		return err
	}
	if err = j.awaitJob(w, r, id); err != nil {
		return err
	}
	tasks, next, err := j.broker.FindTasks(r.Context(), id, q)
	if err != nil {
		return err
	}
	page := wire.List[wire.Task]{Items: tasksOf(tasks), Freshness: reads.Freshness(r.Context())}
	if next != 0 {
		page.Next = strconv.FormatUint(uint64(next), 10)
	}
	return rest.WriteJSON(w, http.StatusOK, page)
}

func tasksOf(tasks []node.Task) []wire.Task {
	out := make([]wire.Task, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, form.Task(t))
	}
	return out
}

// taskQuery reads which tasks a request is for.
func taskQuery(r *http.Request) (q node.TaskQuery, err error) {
	limit, err := rest.QueryUint(r, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return q, err
	}
	q.Limit = int(limit)
	if q.From, err = rest.QueryCursor(r); err != nil {
		return q, err
	}
	if q.States, err = rest.TaskStates(r.URL.Query()["state"]); err != nil {
		return q, err
	}
	q.Only, err = rest.QueryIndices(r)
	return q, err
}

// firstFailed returns the first tasks of a job that failed or were lost. One that
// the job's record goes away beneath has none.
func (j *Jobs) firstFailed(ctx context.Context, job node.Job) ([]wire.Task, error) {
	if job.Counts["failed"]+job.Counts["lost"] == 0 {
		return nil, nil
	}
	tasks, _, err := source.FindAll(ctx, j.broker, job.ID, node.TaskQuery{States: badStates}, maxFailed)
	if errors.Is(err, node.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tasksOf(tasks), nil
}
