package jobs

import (
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// registerRerun adds POST /v1/jobs/{id}/rerun. What to run is in the query, so that
// the request can be passed on as it is.
func (j *Jobs) registerRerun() {
	j.api.Handle(huma.Operation{
		OperationID: "rerun", Method: http.MethodPost, Path: "/v1/jobs/{id}/rerun", Summary: "Run tasks of a job again, as a new job",
		Description: "The new job is the same but for its indices: its tasks have those of the tasks that are run again. " +
			"Without state and tasks these are the ones that failed or were lost so far.",
		Parameters: []*huma.Param{
			rest.IDParam(), rest.StatesParam(), rest.QueryParam("tasks", huma.TypeString, "only those with these indices, such as 3,17,40-60"),
			{Name: wire.HeaderKey, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "the same key and request give the first answer again"},
		},
		Responses: j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Accepted{}), 400, 403, 404,
			409, 422, 429, 503),
	}, j.rerun)
}

func (j *Jobs) rerun(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	q := node.TaskQuery{States: badStates}
	states, err := rest.TaskStates(r.URL.Query()["state"])
	if err != nil {
		return err
	}
	if states != 0 {
		q.States = states
	}
	if q.Only, err = rest.QueryIndices(r); err != nil {
		return err
	}
	if q.Only.Len() > 0 && states == 0 {
		q.States = 0 // they are named
	}
	spec, err := j.broker.Rerun(r.Context(), id, q)
	if err != nil {
		return err
	}
	req := node.Request{Spec: spec, Key: key}
	if key != "" { // more tasks may have failed by the time it is asked again
		req.Meaning = sha256.Sum256(fmt.Appendf(nil, "rerun %s %d %s", id, q.States, q.Only))
	}
	return j.accept(w, r, req)
}
