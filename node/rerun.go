package node

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
)

// rerunPage is how many tasks are looked up at a time.
const rerunPage = 1000

// Rerun makes the job that tries tasks of an earlier one again: the same job, with
// the indices of those that the query selects. It wraps ErrNothing if there are
// none. From and Limit of the query are not looked at.
func (b *Broker) Rerun(ctx context.Context, id fsm.JobID, q TaskQuery) (Spec, error) {
	job, err := b.Job(ctx, id)
	if err == nil && id.Site != b.cfg.Site {
		err = b.elsewhere(id.Site, "owner") // the new job is its owner's, too
	}
	if err != nil {
		return Spec{}, err
	}
	spec := job.Spec
	spec.Indices = Indices{}
	for q.From, q.Limit = 0, rerunPage; ; {
		tasks, next, err := b.FindTasks(ctx, id, q)
		if err != nil {
			return Spec{}, err
		}
		for i := range tasks {
			spec.Indices.Add(tasks[i].Index)
		}
		if spec.Indices.Ranges() > MaxIndexRanges {
			return Spec{}, &SpecError{Field: "indices", Reason: fmt.Sprintf("would have more than %d ranges: name fewer of its tasks", MaxIndexRanges)}
		}
		if q.From = next; next == 0 {
			break
		}
	}
	if spec.Count = spec.Indices.Len(); q.States == 0 && spec.Count < q.Only.Len() {
		return Spec{}, fmt.Errorf("run tasks %s of job %s again: it has not all of them: %w", q.Only, id, ErrNotFound)
	}
	if spec.Count == 0 {
		return Spec{}, fmt.Errorf("run tasks of job %s again: %w", id, ErrNothing)
	}
	return checked(spec)
}

// checked returns a spec as ParseSpec has it, or why it is no valid one.
func checked(s Spec) (Spec, error) {
	text, err := s.MarshalJSON()
	if err != nil {
		return Spec{}, fmt.Errorf("write job: %w", err)
	}
	return ParseSpec(text)
}
