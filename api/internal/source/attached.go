package source

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Attachments are what this broker keeps of its site's jobs beside their specs.
type Attachments interface {
	// Attached returns it without the document, and AttachedDocument with it. Errors: node.ErrNotFound.
	Attached(ctx context.Context, id command.JobID) (node.Attached, error)
	AttachedDocument(ctx context.Context, id command.JobID) (node.Attached, error)
	// AttachedJobs lists jobs below a number, 0 = all, newest first, that f takes, so many at most, and the number
	// to go on below, 0 = there are no more: there may be fewer than that although there are more.
	AttachedJobs(
		ctx context.Context, below uint64, most int, f func(*node.Attached) bool,
	) (list []node.AttachedJob, next uint64)
}

// Awaiting are this site's jobs that are held until their inputs are here (node.Request.Importing).
type Awaiting interface {
	// AwaitInputs returns them, oldest first; it waits until the broker has begun.
	AwaitInputs(ctx context.Context) ([]command.JobID, error)
	// Brought has one run with the inputs that its spec names now, and NotBrought ends one, for a reason. Errors wrap
	// node.ErrEnded if the job waits for none any more.
	Brought(ctx context.Context, id command.JobID, spec jobspec.Spec) error
	NotBrought(ctx context.Context, id command.JobID, why string) error
	// AttachedEnded returns what is closed once a job has ended to which something is attached, or if none is.
	AttachedEnded(id command.JobID) <-chan struct{}
}
