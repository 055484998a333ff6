// Package source says what the API and its pages need of the broker that they stand
// before, in narrow parts: who answers takes those that it needs. Errors wrap node's
// documented ones, or are a *node.ElsewhereError.
package source

import (
	"context"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

// State says whose state it is, and how old it may be.
type State interface {
	// Site is this broker's own.
	Site() string
	// Freshness says how old the replicated state may be.
	Freshness() node.Freshness
	// Current returns why the replicated state is not known yet, or nil.
	Current() error
}

// Feed says how far the state is, and what happens.
type Feed interface {
	// Index is the number of the last entry applied here.
	Index() uint64
	// Events subscribes to what happens after a place in the Feed.
	Events(from node.EventID, f node.EventFilter) *replica.Subscription
	Feed() *replica.Feed
}

// Tasks finds tasks.
type Tasks interface {
	// FindTasks returns the tasks that a query selects, and the index to go on
	// with, 0 = none: there may be fewer than its limit although there are more.
	FindTasks(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error)
}

// Jobs shows jobs and ends them.
type Jobs interface {
	Tasks
	Job(ctx context.Context, id command.JobID) (node.Job, error)
	Jobs(ctx context.Context, q node.JobQuery) (node.JobPage, error)
	Cancel(ctx context.Context, id command.JobID) error
	// SetHold keeps the held tasks of a gated job of this site held, or lets them go again.
	SetHold(ctx context.Context, id command.JobID, hold bool) error
	// Dependencies returns what a job of this site waits for, and the first most of those that wait for it; of another
	// site's it knows none.
	Dependencies(ctx context.Context, id command.JobID, most int) (node.Dependencies, error)
}

// Submissions makes jobs, and ends many.
type Submissions interface {
	// Submit accepts jobs: one answer per request, in order.
	Submit(ctx context.Context, reqs []node.Request) []node.Answer
	// BeginSubmit is Submit that does not wait: what is begun later comes later. The answers are awaited once.
	BeginSubmit(ctx context.Context, reqs []node.Request) (await func() []node.Answer)
	// DryRun says what would become of a submission, and accepts nothing.
	DryRun(ctx context.Context, req node.Request) (node.Why, error)
	// Rerun makes the job that tries the selected tasks of another one again.
	Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error)
	// SetPriority gives jobs of this site another priority: one error or nil per job.
	SetPriority(ctx context.Context, ids []command.JobID, priority int32) []error
	// CancelAll cancels jobs, or tasks of them: one error or nil per target.
	CancelAll(ctx context.Context, targets []node.CancelTarget) []error
}

// Owners says whose jobs are.
type Owners interface {
	// UserOf returns the user of a job of this site by its number, "" if it is the site's own.
	UserOf(num uint64) string
}

// Whys says why a job waits.
type Whys interface {
	Why(ctx context.Context, id command.JobID) (node.Why, error)
}

// Outputs has what this site's tasks have written.
type Outputs interface {
	Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)
	// KeptOutputs returns what this site knows of the output of tasks, and MayHaveRun the
	// other sites that may know more.
	KeptOutputs(job command.JobID, positions []uint32) []node.KeptOutput
	MayHaveRun(job command.JobID) []node.ElsewhereError
}

// Federation shows the federation.
type Federation interface {
	Sites() []node.Site
	Queue() []fsm.QueueView
	Ledger() fsm.LedgerView
	// Plausibility tells what stands out of what sites report and nobody can prove, as this broker has seen it.
	Plausibility() node.Plausibility
	Params() command.Params
	// Status computes the state's hash if hash is true.
	Status(hash bool) node.Status
}

// Operator is what only this site's operator asks for, and the federation's policy.
type Operator interface {
	// Quotas returns what each site uses of its quotas.
	Quotas() []fsm.QuotaView
	// Users returns what this site's users use of their quotas, by name, and the limits of node.EveryUser;
	// SetUserLimits changes the limits of one.
	Users(ctx context.Context) ([]node.UserUse, error)
	SetUserLimits(ctx context.Context, user string, change node.UserLimitsChange) error
	// SetParams changes the federation's parameters, or returns the motion for that, which waits for the electors.
	SetParams(ctx context.Context, p command.Params) (*node.Motion, error)
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
}

// Roster is who the members are, and what the electors decide.
type Roster interface {
	Members() []node.Member
	Member(site string) (node.Member, error)
	Invitations() []node.Invitation
	Motions() []node.Motion
	// Invite invites a site, and returns the text that lets it in, once, within a time.
	Invite(ctx context.Context, site string, elector bool, within time.Duration) (node.Invited, error)
	// Reinvite returns a text by which a member comes back on an empty disk, with the key that the roster has.
	Reinvite(site string) (node.Invited, error)
	// Revoke ends the invitations of a site that still let somebody in.
	Revoke(ctx context.Context, site string) ([]node.Invitation, error)
	// Propose makes a motion, and Vote votes on one, named by its number or by the site that it alone is about; both
	// return it as it stands then.
	Propose(ctx context.Context, c *command.Motion) (node.Motion, error)
	Vote(ctx context.Context, motion string, yes bool) (node.Motion, error)
	// Rekey passes on the replacement of a site's key, which proves itself.
	Rekey(ctx context.Context, c *command.Rekey) (node.Member, error)
}

// Health is what probes ask.
type Health interface {
	// Live and Ready return nil or why not.
	Live() error
	Ready() error
}

// maxPages bounds the pages of tasks that are asked for in search of those of one answer.
const maxPages = 100

// FindAll asks on, page by page, until so many tasks are found or there are no
// more; next is where to go on, 0 = nowhere.
func FindAll(
	ctx context.Context, b Tasks, id command.JobID, q node.TaskQuery, most int,
) (all []node.Task, next uint32, err error) {
	for range maxPages {
		q.Limit = most - len(all)
		tasks, next, err := b.FindTasks(ctx, id, q)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, tasks...)
		if q.From = next; next == 0 || len(all) == most {
			break
		}
	}
	return all, q.From, nil
}
