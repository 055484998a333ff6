package sight

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Attached implements source.Attachments: it is for who may see all of the job.
func (j *Rule) Attached(ctx context.Context, id command.JobID) (node.Attached, error) {
	if err := j.Owned(ctx, id); err != nil {
		return node.Attached{}, err
	}
	return j.broker.Attached(ctx, id)
}

// AttachedDocument implements source.Attachments, as Attached does.
func (j *Rule) AttachedDocument(ctx context.Context, id command.JobID) (node.Attached, error) {
	if err := j.Owned(ctx, id); err != nil {
		return node.Attached{}, err
	}
	return j.broker.AttachedDocument(ctx, id)
}

// AttachedJobs implements source.Attachments: an operator sees all, others their own.
func (j *Rule) AttachedJobs(
	ctx context.Context, below uint64, most int, f func(*node.Attached) bool,
) (list []node.AttachedJob, next uint64) {
	asker, here := node.AskerOf(ctx), j.broker.Site()
	return j.broker.AttachedJobs(ctx, below, most, func(a *node.Attached) bool {
		return asker.Sees(command.JobID{Site: here}, here, a.User) == node.SeesAll && f(a)
	})
}
