// Package api serves HTTP: step 1 of a job's way. It never imports a coordination backend or a handler.
package api

import (
	"context"
	"io"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Broker is what the API needs of the broker it stands before. Errors wrap
// node's documented ones, or are a *node.ElsewhereError.
type Broker interface {
	Feed
	Explainer
	// Submit accepts jobs: one answer per request, in order.
	Submit(ctx context.Context, reqs []node.Request) []node.Answer
	Job(ctx context.Context, id fsm.JobID) (node.Job, error)
	Jobs(ctx context.Context, q node.JobQuery) (node.JobPage, error)
	// Tasks returns up to limit tasks with index ≥ from, and the next index
	// (0 when there are no more).
	Tasks(ctx context.Context, id fsm.JobID, from uint32, limit int) ([]node.Task, uint32, error)
	// FindTasks is Tasks of those that a query selects: there may be fewer than its
	// limit although there are more.
	FindTasks(ctx context.Context, id fsm.JobID, q node.TaskQuery) ([]node.Task, uint32, error)
	Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)
	// KeptOutputs returns what this site knows of the output of tasks, and MayHaveRun the
	// other sites that may know more.
	KeptOutputs(job fsm.JobID, positions []uint32) []node.KeptOutput
	MayHaveRun(job fsm.JobID) []node.ElsewhereError
	Cancel(ctx context.Context, id fsm.JobID) error
	// CancelAll cancels jobs, or tasks of them: one error or nil per target.
	CancelAll(ctx context.Context, targets []node.CancelTarget) []error
	// Rerun makes the job that tries the selected tasks of another one again.
	Rerun(ctx context.Context, id fsm.JobID, q node.TaskQuery) (jobspec.Spec, error)
	Sites() []node.Site
	Queue() []fsm.QueueView
	// Quotas returns what each site uses of its quotas.
	Quotas() []fsm.QuotaView
	Ledger() fsm.LedgerView
	Params() fsm.Params
	SetParams(ctx context.Context, p fsm.Params) error
	// Drain has the site take on nothing for others; with own, nothing for its
	// own users either. What runs goes on.
	Drain(ctx context.Context, own bool) error
	// Resume ends a drain.
	Resume(ctx context.Context) error
	// Draining tells what the site takes on: nothing for others (on), nothing
	// for its own users (own).
	Draining(ctx context.Context) (on, own bool)
	// Leave begins to take the site out of the federation; the broker ends by
	// itself once the site has left.
	Leave(ctx context.Context, now, forget bool) error
	// Status computes the state's hash if hash is true.
	Status(hash bool) node.Status
	// Current returns why the replicated state is not known yet, or nil.
	Current() error
	// Site is this broker's own.
	Site() string
	// Live and Ready return nil or why not.
	Live() error
	Ready() error
}

// Feed says how far and how fresh the replicated state is, and what happens.
type Feed interface {
	// Events subscribes to what happens after a place in the Feed.
	Events(from node.EventID, f node.EventFilter) *replica.Subscription
	Feed() *replica.Feed
	// Index is the number of the last entry applied here.
	Index() uint64
	// Freshness says how old the replicated state may be; Confirm returns once it
	// is as new as the call.
	Freshness() node.Freshness
	Confirm(ctx context.Context) error
}
