package source

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
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
