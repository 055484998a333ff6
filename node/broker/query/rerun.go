package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// rerunPage is how many tasks are looked up at a time.
const rerunPage = 1000

// Rerun makes the job that tries tasks of an earlier one again: the same job, with
// the indices of those that the query selects. It wraps ErrNothing if there are
// none. It waits for other jobs only if the earlier one still does. From and Limit of the query are not looked at.
func (rd *Reader) Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error) {
	job, err := rd.Job(ctx, id)
	if err == nil && id.Site != rd.site {
		err = rd.Elsewhere(id.Site, "owner") // the new job is its owner's, too
	}
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec := job.Spec
	spec.Indices = jobspec.Indices{}
	waits := false
	if err = rd.query(ctx, func(c *core.Core) { waits = c.Own().Waits(id.Num) }); err != nil {
		return jobspec.Spec{}, err
	}
	if !waits { // what it waited for has ended
		spec.After = nil
	}
	spec.After = slices.DeleteFunc(slices.Clone(spec.After), func(d jobspec.Dependency) bool {
		return d.When == jobspec.WhenEach // of tasks that are not the same ones
	})
	for q.From, q.Limit = 0, rerunPage; ; {
		tasks, next, err := rd.FindTasks(ctx, id, q)
		if err != nil {
			return jobspec.Spec{}, err
		}
		for i := range tasks {
			spec.Indices.Add(tasks[i].Index)
		}
		if spec.Indices.Ranges() > jobspec.MaxIndexRanges {
			return jobspec.Spec{}, &jobspec.SpecError{Field: "indices", Reason: fmt.Sprintf("would have more than %d ranges: name fewer of its tasks", jobspec.MaxIndexRanges)}
		}
		if q.From = next; next == 0 {
			break
		}
	}
	if spec.Count = spec.Indices.Len(); q.States == 0 && spec.Count < q.Only.Len() {
		return jobspec.Spec{}, fmt.Errorf("run tasks %s of job %s again: it has not all of them: %w", q.Only, id, node.ErrNotFound)
	}
	if spec.Count == 0 {
		return jobspec.Spec{}, fmt.Errorf("run tasks of job %s again: %w", id, node.ErrNothing)
	}
	return spec, spec.CheckSize()
}
