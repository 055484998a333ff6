package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
)

// routes registers every operation; humaOps lists the plain reads.
func (s *Server) routes() {
	s.humaOps()
	id := rest.IDParam()
	s.api.Handle(huma.Operation{
		OperationID: "submit", Method: http.MethodPost, Path: "/v1/jobs", Summary: "Submit a job, or many",
		Description: "application/json holds one job; application/x-ndjson one job a line, answered by one line each in order, not atomic.",
		Parameters: []*huma.Param{
			rest.QueryParam("strict", huma.TypeBoolean, "refuse what no present site could run"),
			rest.QueryParam("dry_run", huma.TypeBoolean, "one job only: accept nothing, answer 200 with what would become of it"),
			{Name: wire.HeaderKey, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "the same key and job give the first answer again, however it is written; with NDJSON the key of line n is KEY/n"},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			wire.TypeJSON:   {Schema: s.api.Schema(wire.Spec{})},
			wire.TypeNDJSON: {Schema: s.api.Schema(wire.Spec{})},
		}},
		Responses: s.submitResponses(),
	}, s.submit)
	s.api.Handle(huma.Operation{
		OperationID: "job", Method: http.MethodGet, Path: "/v1/jobs/{id}", Summary: "One job",
		Parameters: append(blockingParams(), id),
		Responses:  s.api.Responses(http.StatusOK, wire.TypeJSON, s.api.Schema(wire.Job{}), 400, 404, 503),
	}, s.job)
	s.api.Handle(huma.Operation{
		OperationID: "cancel", Method: http.MethodDelete, Path: "/v1/jobs/{id}", Summary: "Cancel a job",
		Parameters: []*huma.Param{id},
		Responses:  s.api.Responses(http.StatusAccepted, wire.TypeJSON, s.api.Schema(wire.Job{}), 403, 404, 409, 429, 503),
	}, s.cancel)
	s.api.Handle(huma.Operation{
		OperationID: "tasks", Method: http.MethodGet, Path: "/v1/jobs/{id}/tasks", Summary: "The tasks of a job",
		Parameters: append(blockingParams(),
			id, rest.QueryParam("limit", huma.TypeInteger, "1 to 1000, default 100"), rest.QueryParam("cursor", huma.TypeString, "next of the page before"),
			rest.StatesParam(), rest.QueryParam("tasks", huma.TypeString, "only those with these indices, such as 3,17,40-60"),
		),
		Description: "By index. With state a page may hold fewer than limit, even none, although next is set.",
		Responses:   s.api.Responses(http.StatusOK, wire.TypeJSON, s.api.Schema(wire.List[wire.Task]{}), 400, 404, 503),
	}, s.tasks)
	s.api.Handle(huma.Operation{
		OperationID: "set-policy", Method: http.MethodPut, Path: "/v1/policy", Summary: "Change the federation's policy",
		Description: "Fields left out keep their value.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{wire.TypeJSON: {Schema: s.api.Schema(wire.Policy{})}}},
		Responses:   s.api.Responses(http.StatusOK, wire.TypeJSON, s.api.Schema(wire.Policy{}), 400, 403, 413, 415, 422, 429, 503),
	}, s.setPolicy)
	s.siteOps()
	s.whyOps()
	s.rerunOps()
	s.cancelOps()
	s.waitOps()
	s.eventOps()
	s.archiveOps()
	s.contactOps()
	s.outputs.Register()
	s.health()
}
