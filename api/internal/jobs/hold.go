package jobs

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// registerHold adds POST /v1/jobs/{id}/hold and its counterpart.
func (j *Jobs) registerHold() {
	add := func(name, summary, description string, hold bool) {
		j.api.Handle(huma.Operation{
			OperationID: name, Method: http.MethodPost, Path: "/v1/jobs/{id}/" + name, Summary: summary,
			Description: description, Parameters: []*huma.Param{rest.IDParam()},
			Responses: j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Job{}),
				400, 403, 404, 409, 503),
		}, func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
			return j.setHold(w, r, param("id"), hold)
		})
	}
	add("hold", "Begin no more tasks of a job",
		"What waits is held until release, wherever it waits, and what fails or is lost is not tried again before. "+
			"What runs goes on, but for the attempts of tasks that wait again because their site is suspected: these are "+
			"stopped. A job's rules go on ending tasks that are not tried again. From then on the job's tasks are released "+
			"by its site's broker, as those of a job with parallel are.", true)
	add("release", "Let a job's held tasks begin again", "As its rules say. A job that is not held by hand stays as it is.", false)
}

func (j *Jobs) setHold(w http.ResponseWriter, r *http.Request, text string, hold bool) error {
	id, err := command.ParseJobID(text)
	if err != nil {
		return err
	}
	if err = j.broker.SetHold(r.Context(), id, hold); err != nil {
		return err
	}
	job, err := j.broker.Job(r.Context(), id)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusAccepted, form.Job(job))
}
