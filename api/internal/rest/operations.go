// Package rest is the way from the router to what answers: it registers and documents
// operations, reads their parameters, and knows neither broker nor resource.
package rest

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// API is the router with its operations and their description.
type API struct {
	gate   Gate
	log    zerolog.Logger
	router router
	huma   huma.API
}

// Gate is what every request passes.
type Gate interface {
	// Begin comes first and may replace both ends of the exchange. What it returns sets
	// headers right before those of the answer go out.
	Begin(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func(http.Header))
	// Admit refuses what is to reach no operation, and returns the request for those that follow. release is called
	// once it was answered, also if it was refused.
	Admit(w http.ResponseWriter, r *http.Request) (admitted *http.Request, release func(), err error)
	// Answer is told of the answer to an admitted request right before it goes out.
	Answer(r *http.Request, status int, h http.Header)
	// Refuse answers what reached no operation.
	Refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem)
	// Forward has another broker answer.
	Forward(w http.ResponseWriter, r *http.Request, at *node.ElsewhereError)
	// Observe notes an answered request.
	Observe(route, method string, status int, took time.Duration)
}

// New makes an API without operations. The version is the program's.
func New(version string, gate Gate, logger zerolog.Logger) *API {
	a := &API{gate: gate, log: logger, router: newRouter(gate, logger)}
	a.huma = huma.NewAPI(humaConfig(version), a.router)
	// Answers hold problems, too: one form, one name in the document.
	a.OpenAPI().Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Problem](),
		reflect.TypeFor[problem.Problem]())
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// OpenAPI describes the operations.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }

// Page registers what is no operation of the API. One that streams has no HEAD.
func (a *API) Page(
	method, path string, streams bool, h func(w http.ResponseWriter, r *http.Request, param func(string) string),
) {
	a.router.page(method, path, streams, h)
}

// Handler answers one operation on the bare exchange: those that stream, that
// may be passed on to another broker, or that read bodies by themselves. Its
// error becomes a problem, or a question to another broker.
type Handler func(w http.ResponseWriter, r *http.Request, param func(string) string) error

// Handle registers an operation on the bare exchange, and documents it.
func (a *API) Handle(op huma.Operation, h Handler) {
	known := repeatable(op.Parameters)
	a.huma.Adapter().Handle(&op, func(ctx huma.Context) {
		w, r := exchange(ctx)
		err := onlyQueries(r, known)
		if err == nil {
			err = h(w, r, ctx.Param)
		}
		if err != nil {
			a.Fail(w, r, err)
		}
	})
	a.huma.OpenAPI().AddOperation(&op)
}

// Fail answers with a problem, or has another broker answer.
func (a *API) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if err = a.Elsewhere(w, r, err); err == nil {
		return
	}
	if ended := problem.Ended(r.Context()); ended != nil {
		err = ended
	}
	p := problem.Of(err)
	if p.Status == http.StatusInternalServerError {
		a.log.Error().Err(err).Str("path", problem.OneLine(r.URL.Path)).Msg("request failed")
	}
	NoteOf(r.Context()).Refuse(&p.Problem)
	p.Write(w)
}

// Elsewhere has another broker answer, if err says so, before it returns.
func (a *API) Elsewhere(w http.ResponseWriter, r *http.Request, err error) error {
	var at *node.ElsewhereError
	if errors.As(err, &at) {
		a.gate.Forward(w, r, at)
		return nil
	}
	return err
}

// Schema documents a wire type.
func (a *API) Schema(v any) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
}

// Responses documents the good answer and the problems.
func (a *API) Responses(ok int, kind string, schema *huma.Schema, problems ...int) map[string]*huma.Response {
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
			Content: map[string]*huma.MediaType{wire.TypeProblem: {Schema: a.Schema(problem.Problem{})}},
		}
	}
	return out
}

// humaConfig turns off everything of huma that writes files of its own.
func humaConfig(version string) huma.Config {
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "CloudShare", Version: version,
				Description: "Every answer carries " + wire.HeaderIndex + ". Errors are RFC 9457 problems with a stable type.",
			},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats: map[string]huma.Format{
			wire.TypeJSON: huma.DefaultJSONFormat,
			"json":        huma.DefaultJSONFormat,
		},
		DefaultFormat:                wire.TypeJSON,
		RejectUnknownQueryParameters: true,
	}
	return cfg
}
