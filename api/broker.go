// Package api serves HTTP: step 1 of a job's way. It never imports a coordination backend or a handler.
package api

import (
	"context"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Broker is what the API needs of the broker it stands before. Errors wrap
// node's documented ones, or are a *node.ElsewhereError.
type Broker interface {
	web.Reader
	Explainer
	// Submit accepts jobs: one answer per request, in order.
	Submit(ctx context.Context, reqs []node.Request) []node.Answer
	// KeptOutputs returns what this site knows of the output of tasks, and MayHaveRun the
	// other sites that may know more.
	KeptOutputs(job command.JobID, positions []uint32) []node.KeptOutput
	MayHaveRun(job command.JobID) []node.ElsewhereError
	// CancelAll cancels jobs, or tasks of them: one error or nil per target.
	CancelAll(ctx context.Context, targets []node.CancelTarget) []error
	// Rerun makes the job that tries the selected tasks of another one again.
	Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error)
	// Quotas returns what each site uses of its quotas.
	Quotas() []fsm.QuotaView
	SetParams(ctx context.Context, p command.Params) error
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
	// Events subscribes to what happens after a place in the Feed.
	Events(from node.EventID, f node.EventFilter) *replica.Subscription
	Feed() *replica.Feed
	// Index is the number of the last entry applied here.
	Index() uint64
	// Confirm returns once the replicated state is as new as the call.
	Confirm(ctx context.Context) error
	// Live returns nil or why not.
	Live() error
}
