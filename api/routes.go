package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// handler answers one operation on the bare exchange: those that stream, that
// may be passed on to another broker, or that read bodies by themselves. Its
// error becomes a problem, or a question to another broker.
type handler func(w http.ResponseWriter, r *http.Request, param func(string) string) error

// routes registers every operation; humaOps lists the plain reads.
func (s *Server) routes() {
	// Answers hold problems, too: one form, one name in the document.
	s.huma.OpenAPI().Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Problem](), reflect.TypeFor[problem.Problem]())
	s.humaOps()
	id := idParam()
	s.raw(huma.Operation{
		OperationID: "submit", Method: http.MethodPost, Path: "/v1/jobs", Summary: "Submit a job, or many",
		Description: "application/json holds one job; application/x-ndjson one job a line, answered by one line each in order, not atomic.",
		Parameters: []*huma.Param{
			queryParam("strict", huma.TypeBoolean, "refuse what no present site could run"),
			queryParam("dry_run", huma.TypeBoolean, "one job only: accept nothing, answer 200 with what would become of it"),
			{Name: wire.HeaderKey, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "the same key and job give the first answer again, however it is written; with NDJSON the key of line n is KEY/n"},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			wire.TypeJSON:   {Schema: s.schema(wire.Spec{})},
			wire.TypeNDJSON: {Schema: s.schema(wire.Spec{})},
		}},
		Responses: s.submitResponses(),
	}, s.submit)
	s.raw(huma.Operation{
		OperationID: "job", Method: http.MethodGet, Path: "/v1/jobs/{id}", Summary: "One job",
		Parameters: append(blockingParams(), id),
		Responses:  s.responses(http.StatusOK, wire.TypeJSON, s.schema(wire.Job{}), 400, 404, 503),
	}, s.job)
	s.raw(huma.Operation{
		OperationID: "cancel", Method: http.MethodDelete, Path: "/v1/jobs/{id}", Summary: "Cancel a job",
		Parameters: []*huma.Param{id},
		Responses:  s.responses(http.StatusAccepted, wire.TypeJSON, s.schema(wire.Job{}), 403, 404, 409, 429, 503),
	}, s.cancel)
	s.raw(huma.Operation{
		OperationID: "tasks", Method: http.MethodGet, Path: "/v1/jobs/{id}/tasks", Summary: "The tasks of a job",
		Parameters: append(blockingParams(),
			id, queryParam("limit", huma.TypeInteger, "1 to 1000, default 100"), queryParam("cursor", huma.TypeString, "next of the page before"),
			statesParam(), queryParam("tasks", huma.TypeString, "only those with these indices, such as 3,17,40-60"),
		),
		Description: "By index. With state a page may hold fewer than limit, even none, although next is set.",
		Responses:   s.responses(http.StatusOK, wire.TypeJSON, s.schema(wire.List[wire.Task]{}), 400, 404, 503),
	}, s.tasks)
	s.raw(huma.Operation{
		OperationID: "logs", Method: http.MethodGet, Path: "/v1/jobs/{id}/logs", Summary: "A task's output",
		Parameters: []*huma.Param{
			id, queryParam("task", huma.TypeInteger, "index, default 0"), queryParam("attempt", huma.TypeInteger, "from 1; default the latest"),
			queryParam("stream", huma.TypeString, "stdout (default) or stderr"), queryParam("follow", huma.TypeBoolean, "go on until the attempt ends"),
			queryParam("tail", huma.TypeInteger, "only the last lines, 1 to 10000 and at most 256 KiB"),
			queryParam("all", huma.TypeBoolean, "of all tasks that have begun, as "+wire.TypeNDJSON),
			queryParam("tasks", huma.TypeString, "of the tasks with these indices, such as 3,17,40-60, as "+wire.TypeNDJSON), statesParam(),
			queryParam("cursor", huma.TypeString, "next of the answer before"),
		},
		Description: "One task's output is plain text. Where the state keeps no record of its end, as in a job of more than 10,000 tasks, it is the output of the latest attempt that any site " +
			"which answers has. Of several tasks (all, tasks or state; at most 1000 in an answer) it is " + wire.TypeNDJSON + ", by index: pieces of whole lines where " +
			"there are such, a problem for each task whose output is not there or broke off, and at the end the next cursor if there are more tasks. With follow the pieces of " +
			"64 tasks at a time come as they are written, of later attempts too, until all the tasks have ended.",
		Responses: s.logResponses(),
	}, s.followed(s.logs))
	s.raw(huma.Operation{
		OperationID: "set-policy", Method: http.MethodPut, Path: "/v1/policy", Summary: "Change the federation's policy",
		Description: "Fields left out keep their value.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{wire.TypeJSON: {Schema: s.schema(wire.Policy{})}}},
		Responses:   s.responses(http.StatusOK, wire.TypeJSON, s.schema(wire.Policy{}), 400, 403, 413, 415, 422, 429, 503),
	}, s.setPolicy)
	s.siteOps()
	s.whyOps()
	s.rerunOps()
	s.cancelOps()
	s.waitOps()
	s.eventOps()
	s.archiveOps()
	s.contactOps()
	s.keptOps()
	s.health()
}

// raw registers an operation and documents it.
func (s *Server) raw(op huma.Operation, h handler) {
	known := repeatable(op.Parameters)
	s.huma.Adapter().Handle(&op, func(ctx huma.Context) {
		w, r := exchange(ctx)
		err := onlyQueries(r, known)
		if err == nil {
			err = h(w, r, ctx.Param)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
	s.huma.OpenAPI().AddOperation(&op)
}

// repeatable says of each query parameter whether it may stand twice.
func repeatable(params []*huma.Param) map[string]bool {
	known := map[string]bool{}
	for _, p := range params {
		if p.In == "query" {
			known[p.Name] = p.Schema.Type == huma.TypeArray
		}
	}
	return known
}

// onlyQueries refuses unknown and repeated parameters: one that is silently
// ignored hurts whoever mistyped it.
func onlyQueries(r *http.Request, known map[string]bool) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	for name := range r.URL.Query() {
		if _, ok := known[name]; !ok {
			return problem.BadQuery(problem.OneLine(name), "", "is not a parameter of this path")
		}
	}
	return onlyOnce(r, known)
}

// onlyOnce refuses parameters of the list that stand twice and may not.
func onlyOnce(r *http.Request, known map[string]bool) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	for name, values := range r.URL.Query() {
		if many, ok := known[name]; ok && !many && len(values) > 1 {
			return problem.BadQuery(name, values[1], "stands twice")
		}
	}
	return nil
}

// fail answers with a problem, or has another broker answer.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var elsewhere *node.ElsewhereError
	if errors.As(err, &elsewhere) {
		s.peers.Forward(w, r, elsewhere)
		return
	}
	p := problem.Of(err)
	if p.Status == http.StatusInternalServerError {
		s.log.Error().Err(err).Str("path", problem.OneLine(r.URL.Path)).Msg("request failed")
	}
	p.Write(w)
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", wire.TypeJSON)
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the header is out and the client may be gone
	return nil
}

// queryUint reads an unsigned parameter; absent means def.
func queryUint(r *http.Request, name string, def, lo, hi uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" && !r.URL.Query().Has(name) {
		return def, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, problem.BadQuery(name, text, "must be a whole number from "+strconv.FormatUint(lo, 10)+" to "+strconv.FormatUint(hi, 10))
	}
	return n, nil
}

// queryBool reads true or false; absent means false.
func queryBool(r *http.Request, name string) (bool, error) {
	switch text := r.URL.Query().Get(name); text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		if !r.URL.Query().Has(name) {
			return false, nil
		}
		fallthrough
	default:
		return false, problem.BadQuery(name, text, "must be true or false")
	}
}

// idParam documents the job in a path.
func idParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: "SITE.NUMBER", Schema: &huma.Schema{Type: huma.TypeString}}
}

func queryParam(name, kind, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: kind}}
}

// schema documents a wire type.
func (s *Server) schema(v any) *huma.Schema {
	return s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
}

// responses documents the good answer and the problems.
func (s *Server) responses(ok int, kind string, schema *huma.Schema, problems ...int) map[string]*huma.Response {
	index := map[string]*huma.Param{wire.HeaderIndex: {
		Schema: &huma.Schema{Type: huma.TypeInteger}, Description: "number of the last log entry applied by who answers",
	}}
	index[wire.HeaderAge] = &huma.Param{
		Schema: &huma.Schema{Type: huma.TypeString}, Description: "how old the state of who answers may be, in seconds with three decimals; unknown without contact since its start",
	}
	index[wire.HeaderStale] = &huma.Param{
		Schema: &huma.Schema{Type: huma.TypeString}, Description: "true: who answers has no contact with the leader; else left out",
	}
	out := map[string]*huma.Response{strconv.Itoa(ok): {
		Description: http.StatusText(ok), Headers: index, Content: map[string]*huma.MediaType{kind: {Schema: schema}},
	}}
	for _, status := range problems {
		out[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Headers: index,
			Content: map[string]*huma.MediaType{wire.TypeProblem: {Schema: s.schema(problem.Problem{})}},
		}
	}
	return out
}
