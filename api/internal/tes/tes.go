// Package tes answers in the words of GA4GH's Task Execution Service 1.1, in which workflow engines submit tasks: one
// task is one job of this site, and has its id. It translates; what decides is the broker (see DESIGN.md).
package tes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Root is the path below which all of the service is.
const Root = "/ga4gh/tes/v1"

// Broker is what tasks need of the broker that they stand before.
type Broker interface {
	source.Jobs
	source.Attachments
	source.Awaiting
	Site() string
	Submit(ctx context.Context, reqs []node.Request) []node.Answer
	// MissingBlobs returns which of a user's files are not here; node.ErrNoFiles if none are kept.
	MissingBlobs(user string, hashes []files.Hash) ([]files.Hash, error)
	// PutBlob keeps what r has, to its end, for a user.
	PutBlob(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error)
}

// Config of Tasks; all fields but Roots are required.
type Config struct {
	Broker  Broker
	API     *rest.API
	Bodies  *transport.Bodies
	Version string // of the program
	// Roots are the folders that file:// URLs may name.
	Roots exports.Roots
	// Resolve fills in what a job's inputs have behind URLs, as jobs.Config has it.
	Resolve func(ctx context.Context, spec *jobspec.Spec) error
	// HostFailed is what an error of Resolve wraps if asking the host of a URL again may help.
	HostFailed error
	// Took and Refused count submissions.
	Took    func()
	Refused func(why error)
	// Tail returns the end of a task's output, so many lines at most.
	Tail func(ctx context.Context, q node.LogQuery, lines int) ([]byte, error)
	Log  zerolog.Logger
}

// Tasks answers for one broker.
type Tasks struct {
	Config
	turns   *turns
	imports *imports
}

// New makes Tasks; Register adds their operations to the API.
func New(c Config) *Tasks {
	t := &Tasks{c, newTurns(), newImports(c.Log)}
	t.imports.bring, t.imports.awaiting = t.bringInputs, c.Broker.AwaitInputs
	t.imports.userOf = func(ctx context.Context, id command.JobID) string {
		// Of one that is not known bringInputs says so.
		a, _ := c.Broker.Attached(node.WithAsker(ctx, node.Asker{Operator: true}), id)
		return a.User
	}
	return t
}

// Start has inputs brought that tasks of earlier runs of the broker wait for.
func (t *Tasks) Start() { t.imports.start() }

// Close ends what goes on, and waits for it for a while. It may be called again, and before Start.
func (t *Tasks) Close() { t.imports.close() }

// Register adds the operations.
func (t *Tasks) Register() {
	id := &huma.Param{
		Name: "id", In: "path", Required: true, Description: "the task's id, which is its job's",
		Schema: &huma.Schema{Type: huma.TypeString},
	}
	viewParam := rest.QueryParam("view", huma.TypeString, "MINIMAL (default), BASIC or FULL")
	t.handle(huma.Operation{
		OperationID: "tes-service-info", Method: http.MethodGet, Path: Root + "/service-info",
		Summary: "GA4GH TES 1.1: what this service is", Responses: t.answers(tesServiceInfo{}, 401),
	}, t.info)
	t.handle(huma.Operation{
		OperationID: "tes-create", Method: http.MethodPost, Path: Root + "/tasks", Summary: "GA4GH TES 1.1: create a task",
		Description: "One task becomes one job, with its id. Errors of the service itself are {status_code, msg}.",
		Parameters:  []*huma.Param{rest.KeyParam("the same key and document give the first answer again, and make no second task")},
		RequestBody: rest.Body(wire.TypeJSON, t.API.Schema(tesTask{})),
		Responses:   t.answers(tesCreated{}, 400, 401, 413, 415, 429, 503),
	}, t.create)
	t.handle(huma.Operation{
		OperationID: "tes-tasks", Method: http.MethodGet, Path: Root + "/tasks", Summary: "GA4GH TES 1.1: list tasks, newest first",
		Parameters: []*huma.Param{
			rest.QueryParam("name_prefix", huma.TypeString, "only tasks whose name begins so"),
			rest.QueryParam("state", huma.TypeString, "only tasks in this state"),
			rest.ListParam("tag_key", "only tasks with this tag; may be repeated"),
			rest.ListParam("tag_value", "what the tag_key of the same place is; empty: whatever it is"),
			rest.QueryParam("page_size", huma.TypeInteger, "1 to 2047, default 256"),
			rest.QueryParam("page_token", huma.TypeString, "next_page_token of the page before"),
			viewParam,
		},
		Description: "With a filter a page may hold fewer than page_size, even none, although next_page_token is set.",
		Responses:   t.answers(tesList{}, 400, 401),
	}, t.list)
	t.handle(huma.Operation{
		OperationID: "tes-task", Method: http.MethodGet, Path: Root + "/tasks/{id}", Summary: "GA4GH TES 1.1: one task",
		Parameters: []*huma.Param{id, viewParam}, Responses: t.answers(tesTask{}, 400, 401, 403, 404),
	}, t.get)
	t.handle(huma.Operation{
		OperationID: "tes-cancel", Method: http.MethodPost, Path: Root + "/tasks/{id}",
		Summary:     "GA4GH TES 1.1: cancel a task: /tasks/{id}:cancel",
		Description: "The id is followed by :cancel. A task that has ended stays as it is: 200, too.",
		Parameters:  []*huma.Param{id}, Responses: t.answers(tesCanceled{}, 401, 403, 404, 503),
	}, t.cancel)
}

func (t *Tasks) answers(v any, problems ...int) map[string]*huma.Response {
	out := t.API.Responses(http.StatusOK, wire.TypeJSON, t.API.Schema(v))
	for _, status := range problems {
		for code, r := range t.API.Responses(status, wire.TypeJSON, t.API.Schema(tesFailure{})) {
			out[code] = r
		}
	}
	return out
}

// handle registers an operation whose errors are in the service's own form.
func (t *Tasks) handle(op huma.Operation, h rest.Handler) {
	t.API.Handle(op, func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		err := h(w, r, param)
		if err == nil {
			return nil
		}
		return t.fail(w, r, err)
	})
}

// fail answers with an error. All that is wrong with a task is 400.
func (t *Tasks) fail(w http.ResponseWriter, r *http.Request, err error) error {
	if ended := problem.Ended(r.Context()); ended != nil {
		return ended
	}
	var wrong *badTask
	if errors.As(err, &wrong) {
		err = problem.New(http.StatusBadRequest, "invalid-task", "The task is not valid", wrong.Error())
	}
	var elsewhere *node.ElsewhereError
	if errors.As(err, &elsewhere) {
		err = problem.New(http.StatusNotFound, "not-found", "Not found",
			"the task is of site "+elsewhere.Site+": ask its broker")
	}
	p := problem.Of(err)
	switch {
	case p.Status == http.StatusInternalServerError:
		t.Log.Error().Err(err).Str("path", problem.OneLine(r.URL.Path)).Msg("request failed")
	case p.Status == http.StatusUnprocessableEntity:
		p.Status = http.StatusBadRequest
	}
	rest.NoteOf(r.Context()).Refuse(&p.Problem)
	p.SetHeaders(w.Header())
	return rest.WriteJSON(w, p.Status, tesFailure{StatusCode: p.Status, Msg: sentence(&p.Problem)})
}

// sentence words a problem in one line.
func sentence(p *wire.Problem) string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// idOf reads the id of a path, to which no other than a job has one.
func idOf(text string) (command.JobID, error) { return command.ParseJobID(text) }

// cancelled cuts the word behind an id that asks for its end.
func cancelled(text string) (id string, yes bool) { return strings.CutSuffix(text, ":cancel") }
