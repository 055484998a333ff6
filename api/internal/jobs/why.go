package jobs

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// registerWhy adds GET /v1/jobs/{id}/why.
func (j *Jobs) registerWhy() {
	j.api.Handle(huma.Operation{
		OperationID: "why", Method: http.MethodGet, Path: "/v1/jobs/{id}/why", Summary: "Why a job waits, and when it will start",
		Description: "What goes first and on what ground, why each site does not run it, and an estimate of the next task's start. " +
			"Answered as of the last entry applied: standings move with every run, so a blocking read waits for anything that happens.",
		Parameters: append(reads.BlockingParams(), rest.IDParam()),
		Responses:  j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Why{}), 403, 404, 503),
	}, j.why)
}

// submitResponses adds the dry run's answer to those of a submission.
func (j *Jobs) submitResponses() map[string]*huma.Response {
	out := j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Accepted{}), 400, 403, 413, 415, 422,
		429, 503)
	out["200"] = j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Why{}))["200"]
	return out
}

func (j *Jobs) why(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = j.askedHere(r, id); err != nil {
		return err
	}
	if err = j.reads.Await(w, r, command.JobID{}); err != nil { // what happens to others moves its place, too
		return err
	}
	why, err := j.broker.Why(r.Context(), id)
	if err != nil {
		return err
	}
	return writeWhy(w, r, &why)
}

// dryRun answers a submission with dry_run=true: 200 and a wire.Why.
func (j *Jobs) dryRun(w http.ResponseWriter, r *http.Request, body []byte, strict bool) error {
	req, err := request(body, "", strict)
	if err != nil {
		return err
	}
	why, err := j.broker.DryRun(r.Context(), req)
	if err != nil {
		return err
	}
	return writeWhy(w, r, &why)
}

// writeWhy answers with why a job waits, and how old the state is that says so.
func writeWhy(w http.ResponseWriter, r *http.Request, why *node.Why) error {
	out := form.Why(why)
	out.Freshness = reads.Freshness(r.Context())
	return rest.WriteJSON(w, http.StatusOK, out)
}
