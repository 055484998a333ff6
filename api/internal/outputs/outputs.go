// Package outputs serves what tasks have written: of one attempt as text, of several
// tasks as NDJSON, from whichever site has it.
package outputs

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Broker is what outputs need of the broker that they stand before.
type Broker interface {
	source.Feed
	source.Outputs
	source.Tasks
	Site() string
	// Owned returns nil if who asks may read what a job has written.
	Owned(ctx context.Context, id command.JobID) error
}

// Config of Outputs; all fields are required.
type Config struct {
	Broker    Broker
	API       *rest.API
	Peers     *peers.Client
	Followers *transport.Places // one for each output that is followed
	Stop      *transport.Stop
	Log       zerolog.Logger
}

// Outputs answers for one broker.
type Outputs struct {
	broker    Broker
	api       *rest.API
	peers     *peers.Client
	followers *transport.Places
	stop      *transport.Stop
	log       zerolog.Logger
	// searches has one for each search among all brokers that goes on.
	searches chan struct{}
}

// New makes Outputs; Register adds their operations to the API.
func New(c Config) *Outputs {
	return &Outputs{c.Broker, c.API, c.Peers, c.Followers, c.Stop, c.Log, make(chan struct{}, MaxSearches)}
}

// Register adds the operations. The second one is the question by which brokers find
// outputs of which the state does not say where they are.
func (o *Outputs) Register() {
	o.api.Handle(huma.Operation{
		OperationID: "logs", Method: http.MethodGet, Path: "/v1/jobs/{id}/logs", Summary: "A task's output",
		Parameters: []*huma.Param{
			rest.IDParam(), rest.QueryParam("task", huma.TypeInteger, "index, default 0"), rest.QueryParam("attempt", huma.TypeInteger, "from 1; default the latest"),
			rest.QueryParam("stream", huma.TypeString, "stdout (default) or stderr"), rest.QueryParam("follow", huma.TypeBoolean, "go on until the attempt ends"),
			rest.QueryParam("tail", huma.TypeInteger, "only the last lines, 1 to 10000 and at most 256 KiB"),
			rest.QueryParam("all", huma.TypeBoolean, "of all tasks that have begun, as "+wire.TypeNDJSON),
			rest.QueryParam("tasks", huma.TypeString, "of the tasks with these indices, such as 3,17,40-60, as "+wire.TypeNDJSON), rest.StatesParam(),
			rest.QueryParam("cursor", huma.TypeString, "next of the answer before"),
		},
		Description: "One task's output is plain text. Where the state keeps no record of its end, as in a job of more than 10,000 tasks, it is the output of the latest attempt that any site " +
			"which answers has. Of several tasks (all, tasks or state; at most 1000 in an answer) it is " + wire.TypeNDJSON + ", by index: pieces of whole lines where " +
			"there are such, a problem for each task whose output is not there or broke off, and at the end the next cursor if there are more tasks. With follow the pieces of " +
			"64 tasks at a time come as they are written, of later attempts too, until all the tasks have ended.",
		Responses: o.logResponses(),
	}, o.followed(o.logs))
	o.api.Handle(huma.Operation{
		OperationID: "kept", Method: http.MethodGet, Path: "/v1/jobs/{id}/kept", Summary: "Which output of a job's tasks the asked site keeps",
		Description: "For brokers, which look so for the output of ended tasks that the state keeps no record of. It is never passed on. Tasks of which the site knows nothing are left out.",
		Parameters: []*huma.Param{
			rest.IDParam(),
			rest.QueryParam("tasks", huma.TypeString, "places in the job, from 0, such as 3,17,40-60; at most 1000"),
		},
		Responses: o.api.Responses(http.StatusOK, wire.TypeJSON, o.api.Schema(wire.List[wire.Kept]{}), 400, 403, 404),
	}, o.kept)
}

// followed counts those of a handler's requests that follow a log, from before
// it is opened, since that may wait for the task to start, and also while another
// broker answers.
func (o *Outputs) followed(h rest.Handler) rest.Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		if follow, err := rest.QueryBool(r, "follow"); err != nil || !follow {
			return h(w, r, param)
		}
		leave, err := o.followers.Enter(r.Context())
		if err != nil {
			return err
		}
		defer leave()
		return o.api.Elsewhere(w, r, h(w, r, param))
	}
}
