package jobs

import (
	"crypto/sha256"
	"encoding/json"
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
			"Without state and tasks these are the ones that failed or were lost so far. What cpu, memory, gpu and timeout " +
			"say, each task has instead of what it had.",
		Parameters: []*huma.Param{
			rest.IDParam(), rest.StatesParam(), rest.QueryParam("tasks", huma.TypeString, "only those with these indices, such as 3,17,40-60"),
			rest.QueryParam("cpu", huma.TypeInteger, "cores that each task needs now"),
			rest.QueryParam("memory", huma.TypeString, "memory that each may use now, such as 8Gi"),
			rest.QueryParam("gpu", huma.TypeInteger, "GPUs that each needs now"),
			rest.QueryParam("timeout", huma.TypeString, "how long each may run now, such as 2h"),
			rest.KeyParam("the same key and request give the first answer again"),
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
	key, err := rest.IdempotencyKey(r)
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
	changes, err := rerunChanges(r)
	if err != nil {
		return err
	}
	spec, err := j.broker.Rerun(r.Context(), id, q)
	if err == nil && changes != nil {
		err = spec.Change(changes)
	}
	if err != nil {
		return err
	}
	req := node.Request{Spec: spec, Key: key}
	if key != "" { // more tasks may have failed by the time it is asked again
		req.Meaning = sha256.Sum256(fmt.Appendf(nil, "rerun %s %d %s%s", id, q.States, q.Only, changes))
	}
	return j.accept(w, r, req)
}

// rerunChanges reads what the tasks have otherwise than before, as an object of a job's fields; nil = nothing.
func rerunChanges(r *http.Request) ([]byte, error) {
	fields, resources := map[string]any{}, map[string]any{}
	query := r.URL.Query()
	for _, of := range []struct { // in this order, so that the same request has the same error
		name        string
		least, most uint64
	}{{"cpu", 1, command.MaxMilliCPU / 1000}, {"gpu", 0, command.MaxGPU}} {
		if !query.Has(of.name) {
			continue
		}
		n, err := rest.QueryUint(r, of.name, 0, of.least, of.most)
		if err != nil {
			return nil, err
		}
		resources[of.name] = n
	}
	if query.Has("memory") {
		resources["memory"] = query.Get("memory")
	}
	if query.Has("timeout") {
		fields["timeout"] = query.Get("timeout")
	}
	if len(resources) > 0 {
		fields["resources"] = resources
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}
