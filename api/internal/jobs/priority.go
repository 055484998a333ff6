package jobs

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// registerPriority adds POST /v1/jobs/{id}/priority, and POST /v1/priority for many jobs. The priority is in the query,
// so that the request can be passed on as it is.
func (j *Jobs) registerPriority() {
	const bounds = "-1000000 to 1000000; higher first, among its owner's jobs"
	priority := rest.QueryParam("priority", huma.TypeInteger, bounds)
	j.api.Handle(huma.Operation{
		OperationID: "priority", Method: http.MethodPost, Path: "/v1/jobs/{id}/priority",
		Summary: "Change a job's priority",
		Description: "What of the job waits takes its place among the other jobs of its owner that wait, by the new " +
			"priority and then by arrival; what runs goes on. Users change their own jobs, the operator all of the site.",
		Parameters: []*huma.Param{rest.IDParam(), priority},
		Responses: j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Job{}), 400, 403, 404,
			409, 429, 503),
	}, j.setPriority)
	j.api.Handle(huma.Operation{
		OperationID: "priority-many", Method: http.MethodPost, Path: "/v1/priority",
		Summary: "Change the priority of jobs, or of all open jobs of a user or with labels",
		Description: "One item per job named, in order; what becomes of one changes nothing for the others. At most 1000 " +
			"jobs. By user and label: the open jobs of the asked broker's site that are the user's, have all the labels " +
			"and have another priority; more is true if there are others yet: ask again. Users may name themselves alone.",
		Parameters: []*huma.Param{
			priority, rest.ListParam("job", "SITE.NUMBER, may be repeated"), rest.ListParam("label", "KEY=VALUE, may be repeated"),
			rest.QueryParam("user", huma.TypeString, "of the asked broker's site"),
		},
		Responses: j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Prioritized{}), 400, 403, 503),
	}, j.setPriorities)
}

func (j *Jobs) setPriority(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	priority, err := queryPriority(r)
	if err != nil {
		return err
	}
	if err = j.broker.SetPriority(r.Context(), []command.JobID{id}, priority)[0]; err != nil {
		return err
	}
	job, err := j.broker.Job(r.Context(), id)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusAccepted, form.Job(job))
}

// queryPriority reads the priority that a request names.
func queryPriority(r *http.Request) (int32, error) {
	const name = "priority"
	text := r.URL.Query().Get(name)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < -command.MaxPriority || n > command.MaxPriority {
		return 0, problem.BadQuery(name, text, "must be a whole number from -"+strconv.Itoa(command.MaxPriority)+" to "+
			strconv.Itoa(command.MaxPriority))
	}
	return int32(n), nil
}

// setPriorities answers 200 with what became of each job.
func (j *Jobs) setPriorities(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	priority, err := queryPriority(r)
	if err != nil {
		return err
	}
	list, more, err := j.asked(r, false, func(job *node.Job) bool { return job.Spec.Priority != priority })
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, wire.Prioritized{Items: j.prioritizeTargets(r, list, priority), More: more})
}

// prioritizeTargets changes the priority of what the asker may; another site's job is changed at its own broker.
func (j *Jobs) prioritizeTargets(r *http.Request, list []target, priority int32) []wire.PrioritizedJob {
	ids := make([]command.JobID, len(list))
	for i := range list {
		ids[i] = list[i].Job
	}
	items := make([]wire.PrioritizedJob, len(list))
	for i, err := range j.broker.SetPriority(r.Context(), ids, priority) {
		items[i] = wire.PrioritizedJob{Job: list[i].text}
		if err != nil {
			items[i].Problem = &problem.Logged(j.log, err).Problem
		} else if job, err := j.broker.Job(r.Context(), ids[i]); err == nil { // else it was changed all the same
			items[i].State, items[i].Priority = job.State, job.Spec.Priority
		}
	}
	return items
}
