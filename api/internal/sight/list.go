package sight

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// maxPages bounds the pages that are read for one: most of their jobs may be others'.
const maxPages = 100

// Job implements source.Jobs.
func (j *Rule) Job(ctx context.Context, id command.JobID) (node.Job, error) {
	job, err := j.broker.Job(ctx, id)
	if err != nil {
		return job, err
	}
	sight := j.sees(ctx, id)
	if sight == node.SeesNothing {
		return node.Job{}, j.notOwner(id, sight)
	}
	return j.shown(ctx, job, sight), nil
}

// shown leaves of a job what is to be seen, and says whose it is. To another site's broker this site's jobs are sealed,
// as they are in its own state.
func (j *Rule) shown(ctx context.Context, job node.Job, sight node.Sight) node.Job {
	if sight == node.SeesAll {
		job.User, job.CancelledBy = j.Whose(job.ID), j.CancelledBy(job.ID, job.State)
		return job
	}
	spec := jobspec.DefaultSpec()
	spec.Count, spec.Resources, spec.Network = job.Spec.Count, job.Spec.Resources, job.Spec.Network
	job.Spec, job.Outline, job.Notices = spec, true, nil
	job.Sealed = job.Sealed || node.AskerOf(ctx).Site != ""
	return job
}

// Jobs implements source.Jobs: what is not to be seen is left out, and no filter tells what of a job is not shown.
func (j *Rule) Jobs(ctx context.Context, q node.JobQuery) (node.JobPage, error) {
	least, limit := node.SeesOutline, q.Limit
	if len(q.Labels) > 0 || q.Name != "" || q.User != "" {
		least = node.SeesAll
	}
	if q.User != "" {
		q.Site = j.broker.Site() // others' jobs have no users here
	}
	out := node.JobPage{Items: []node.Job{}}
	for range maxPages {
		q.Limit = limit - len(out.Items)
		page, err := j.broker.Jobs(ctx, q)
		if err != nil {
			return node.JobPage{}, err
		}
		found := len(out.Items)
		for i := range page.Items {
			id := page.Items[i].ID
			if sight := j.sees(ctx, id); sight >= least && (q.User == "" || q.User == j.broker.UserOf(id.Num)) {
				out.Items = append(out.Items, j.shown(ctx, page.Items[i], sight))
			}
		}
		out.Next, q.Cursor = page.Next, page.Next
		if whole := len(out.Items)-found == len(page.Items); whole || page.Next == "" {
			break
		}
	}
	return out, nil
}

// Filter has events told as far as who asks may know of their jobs.
func (j *Rule) Filter(ctx context.Context, f node.EventFilter) node.EventFilter {
	least := node.SeesOutline
	if len(f.Labels) > 0 {
		least = node.SeesAll
	}
	if least == node.SeesOutline && node.AskerOf(ctx).Operator {
		return f
	}
	f.Visible = func(id command.JobID) bool { return j.sees(ctx, id) >= least }
	return f
}

// Knows reports whether who asks may know of a job at all.
func (j *Rule) Knows(ctx context.Context, id command.JobID) bool {
	return j.sees(ctx, id) != node.SeesNothing
}

// Archived selects the jobs of whose past who asks may read, nil = all: an operator what the archive has, others their
// own.
func (j *Rule) Archived(ctx context.Context) func(command.JobID) bool {
	if node.AskerOf(ctx).Operator {
		return nil
	}
	return func(id command.JobID) bool { return j.sees(ctx, id) == node.SeesAll }
}
