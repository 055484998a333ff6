// Package jobs answers for jobs and their tasks: it takes submissions, shows them, says
// why they wait, waits for their end, and ends them.
package jobs

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Page sizes of lists.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// maxAwaitedBy is how many jobs one job's answer names that wait for it.
const maxAwaitedBy = 100

// Broker is what jobs need of the broker that they stand before.
type Broker interface {
	source.State
	source.Feed
	source.Jobs
	source.Submissions
	source.Whys
}

// Config of Jobs; all fields are required.
type Config struct {
	Broker            Broker
	API               *rest.API
	Reads             *reads.Reads
	Bodies            *transport.Bodies
	Peers             *peers.Client
	Accepted, Refused prometheus.Counter // submissions
	OverQuota         func(quota string) // is told of each that a quota of its user has refused
	// Resolve fills in what a job's inputs have behind URLs, or says why it is not to be taken now.
	Resolve func(ctx context.Context, spec *jobspec.Spec) error
	Log     zerolog.Logger
}

// Jobs answers for one broker.
type Jobs struct {
	broker            Broker
	api               *rest.API
	reads             *reads.Reads
	bodies            *transport.Bodies
	peers             *peers.Client
	accepted, refused prometheus.Counter
	overQuota         func(quota string)
	resolve           func(ctx context.Context, spec *jobspec.Spec) error
	log               zerolog.Logger
}

// New makes Jobs; Register adds their operations to the API.
func New(c Config) *Jobs {
	return &Jobs{c.Broker, c.API, c.Reads, c.Bodies, c.Peers, c.Accepted, c.Refused, c.OverQuota, c.Resolve, c.Log}
}

// Register adds the operations.
func (j *Jobs) Register() {
	reads.Read(j.api, j.reads, "jobs", "/v1/jobs", "Jobs, newest first; home jobs (durability site) are listed by their own site's broker only", reads.Current(j.broker, j.list))
	id := rest.IDParam()
	j.api.Handle(huma.Operation{
		OperationID: "submit", Method: http.MethodPost, Path: "/v1/jobs", Summary: "Submit a job, or many",
		Description: "application/json holds one job; application/x-ndjson one job a line, answered by one line each in order, not atomic.",
		Parameters: []*huma.Param{
			rest.QueryParam("strict", huma.TypeBoolean, "refuse what no present site could run"),
			rest.QueryParam("dry_run", huma.TypeBoolean, "one job only: accept nothing, answer 200 with what would become of it"),
			rest.KeyParam("the same key and job give the first answer again, however it is written; with NDJSON the key of line n is KEY/n"),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			wire.TypeJSON:   {Schema: j.api.Schema(wire.Spec{})},
			wire.TypeNDJSON: {Schema: j.api.Schema(wire.Spec{})},
		}},
		Responses: j.submitResponses(),
	}, j.submit)
	j.api.Handle(huma.Operation{
		OperationID: "job", Method: http.MethodGet, Path: "/v1/jobs/{id}", Summary: "One job",
		Parameters: append(reads.BlockingParams(), id),
		Responses:  j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Job{}), 400, 403, 404, 503),
	}, j.job)
	j.api.Handle(huma.Operation{
		OperationID: "cancel", Method: http.MethodDelete, Path: "/v1/jobs/{id}", Summary: "Cancel a job",
		Parameters: []*huma.Param{id},
		Responses: j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Job{}), 403, 404, 409, 429,
			503),
	}, j.cancel)
	j.api.Handle(huma.Operation{
		OperationID: "tasks", Method: http.MethodGet, Path: "/v1/jobs/{id}/tasks", Summary: "The tasks of a job",
		Parameters: append(reads.BlockingParams(),
			id, rest.QueryParam("limit", huma.TypeInteger, "1 to 1000, default 100"), rest.QueryParam("cursor", huma.TypeString, "next of the page before"),
			rest.StatesParam(), rest.QueryParam("tasks", huma.TypeString, "only those with these indices, such as 3,17,40-60"),
		),
		Description: "By index. With state a page may hold fewer than limit, even none, although next is set.",
		Responses: j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.List[wire.Task]{}), 400, 403, 404,
			503),
	}, j.tasks)
	j.registerWhy()
	j.registerGraph()
	j.registerRerun()
	j.registerCancel()
	j.registerHold()
	j.registerPriority()
	j.registerWait()
}

type jobsInput struct {
	reads.BlockingQuery
	State  string   `query:"state" enum:"queued,running,succeeded,failed,cancelled,lost,withdrawn" doc:"only jobs in this state"`
	Site   string   `query:"site" doc:"only jobs of this owner"`
	Label  []string `query:"label,explode" doc:"KEY=VALUE, may be repeated"`
	Name   string   `query:"name" maxLength:"200" doc:"only jobs whose name has this part, whatever its case"`
	User   string   `query:"user" maxLength:"63" doc:"only jobs of this user of the broker's site"`
	Limit  int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Cursor string   `query:"cursor" maxLength:"200" doc:"next of the page before"`
}

func (j *Jobs) list(ctx context.Context, in *jobsInput) (*reads.Answer[wire.List[wire.Job]], error) {
	q := node.JobQuery{
		State: in.State, Site: in.Site, Name: strings.ToLower(in.Name), Limit: in.Limit,
		Cursor: in.Cursor,
	}
	if q.Site != "" && !command.ValidSite(q.Site) {
		return nil, problem.BadQuery("site", q.Site, "is not a site's name")
	}
	if in.User != "" {
		if err := j.checkUser(in.User, in.Site); err != nil {
			return nil, err
		}
		q.User = in.User
	}
	var err error
	if q.Labels, err = rest.Labels(in.Label); err != nil {
		return nil, err
	}
	page, err := j.broker.Jobs(ctx, q)
	if err != nil {
		return nil, err
	}
	out := reads.ListOf(page.Items, form.Job)
	out.Body.Next = page.Next
	return out, nil
}

func (j *Jobs) job(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = j.awaitJob(w, r, id); err != nil {
		return err
	}
	job, err := j.broker.Job(r.Context(), id)
	if err != nil {
		return err
	}
	out := form.Job(job)
	out.Freshness = reads.Freshness(r.Context())
	if out.Failed, err = j.firstFailed(r.Context(), job); err != nil {
		return err
	}
	waits, err := j.broker.Dependencies(r.Context(), id, maxAwaitedBy)
	if err != nil {
		return err
	}
	out.WaitsFor, out.AwaitedBy = form.WaitsFor(waits.On), form.AwaitedBy(&waits)
	return rest.WriteJSON(w, http.StatusOK, out)
}

// awaitJob calls Await once it is known that this broker has the job.
func (j *Jobs) awaitJob(w http.ResponseWriter, r *http.Request, id command.JobID) error {
	if err := j.askedHere(r, id); err != nil {
		return err
	}
	return j.reads.Await(w, r, id)
}

// askedHere returns an error if a blocking read asks for a job that this broker does
// not have: it is to be told now, or by another broker.
func (j *Jobs) askedHere(r *http.Request, id command.JobID) error {
	if !r.URL.Query().Has("index") {
		return nil
	}
	_, err := j.broker.Job(r.Context(), id)
	return err
}

// cancel answers with the job as it is once the cancellation was accepted.
func (j *Jobs) cancel(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = j.broker.Cancel(r.Context(), id); err != nil {
		return err
	}
	job, err := j.broker.Job(r.Context(), id)
	if err != nil { // cancelled all the same
		return rest.WriteJSON(w, http.StatusAccepted, wire.Accepted{ID: id.String(), State: "cancelled"})
	}
	return rest.WriteJSON(w, http.StatusAccepted, form.Job(job))
}
