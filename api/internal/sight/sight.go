// Package sight stands between the API and its broker and shows of jobs what who asks may see: node.Asker decides by
// the job's site and user. It is the one place where that is applied, to requests, pages and streams alike.
package sight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Broker is what is asked once it is known who asks.
type Broker interface {
	source.Jobs
	source.Submissions
	source.Whys
	source.Owners
	source.Attachments
	Site() string
	Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)
	Results(ctx context.Context, id command.JobID, from uint32, most int) ([]node.TaskResult, uint32, error)
}

// Rule answers for a broker as far as who asks may see its jobs. The context of each call says who that is.
type Rule struct {
	broker    Broker
	cancelled cancelled
}

// New puts the rule before a broker.
func New(b Broker) *Rule { return &Rule{broker: b} }

// sees returns how much of a job is shown.
func (j *Rule) sees(ctx context.Context, id command.JobID) node.Sight {
	return node.AskerOf(ctx).Sees(id, j.broker.Site(), j.Whose(id))
}

// Whose returns the user of a job of this site, "" if it is of none or another site's. It does not look at who asks:
// whoever may see the job may know.
func (j *Rule) Whose(id command.JobID) string {
	if id.Site != j.broker.Site() {
		return ""
	}
	return j.broker.UserOf(id.Num)
}

// Owned returns nil if who asks may see all of a job and end it; else that there is no such job here, or ErrNotOwner.
func (j *Rule) Owned(ctx context.Context, id command.JobID) error {
	sight := j.sees(ctx, id)
	if sight == node.SeesAll {
		return nil
	}
	_, err := j.broker.Job(ctx, id)
	var elsewhere *node.ElsewhereError
	if err != nil && !errors.As(err, &elsewhere) {
		return err
	}
	return j.notOwner(id, sight)
}

// notOwner words why a job is not shown.
func (j *Rule) notOwner(id command.JobID, sight node.Sight) error {
	if sight == node.SeesOutline && id.Site != j.broker.Site() {
		return fmt.Errorf("job %s: %w: its command and output are shown, and it is ended, by the broker of %s alone: ask there",
			id, node.ErrNotOwner, id.Site)
	}
	return fmt.Errorf("job %s: %w: it is shown to its user and to the operator of site %s alone", id, node.ErrNotOwner, id.Site)
}

// Submit implements source.Submissions: the jobs are those of the user who asks.
func (j *Rule) Submit(ctx context.Context, reqs []node.Request) []node.Answer {
	return j.BeginSubmit(ctx, reqs)()
}

// BeginSubmit implements source.Submissions, as Submit does.
func (j *Rule) BeginSubmit(ctx context.Context, reqs []node.Request) func() []node.Answer {
	asker := node.AskerOf(ctx)
	for i := range reqs {
		reqs[i].User, reqs[i].Operator = asker.User, asker.Operator
	}
	return j.broker.BeginSubmit(ctx, reqs)
}

// DryRun implements source.Submissions.
func (j *Rule) DryRun(ctx context.Context, req node.Request) (node.Why, error) {
	asker := node.AskerOf(ctx)
	req.User, req.Operator = asker.User, asker.Operator
	return j.broker.DryRun(ctx, req)
}

// Rerun implements source.Submissions.
func (j *Rule) Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error) {
	if err := j.Owned(ctx, id); err != nil {
		return jobspec.Spec{}, err
	}
	return j.broker.Rerun(ctx, id, q)
}

// Dependencies implements source.Jobs: jobs that are not the asker's are counted, and not named.
func (j *Rule) Dependencies(ctx context.Context, id command.JobID, most int) (node.Dependencies, error) {
	if j.sees(ctx, id) != node.SeesAll {
		return node.Dependencies{}, nil
	}
	d, err := j.broker.Dependencies(ctx, id, most)
	hidden := func(id command.JobID) bool { return j.sees(ctx, id) != node.SeesAll }
	d.Waiting, d.Followed = slices.DeleteFunc(d.Waiting, hidden), slices.DeleteFunc(d.Followed, hidden)
	return d, err
}

// Cancel implements source.Jobs.
func (j *Rule) Cancel(ctx context.Context, id command.JobID) error {
	if err := j.Owned(ctx, id); err != nil {
		return err
	}
	settle := j.noteCancel(ctx, id)
	err := j.broker.Cancel(ctx, id)
	settle(err)
	return err
}

// SetHold implements source.Jobs.
func (j *Rule) SetHold(ctx context.Context, id command.JobID, hold bool) error {
	if err := j.Owned(ctx, id); err != nil {
		return err
	}
	return j.broker.SetHold(ctx, id, hold)
}

// SetPriority implements source.Submissions: what is not the asker's stays as it is.
func (j *Rule) SetPriority(ctx context.Context, ids []command.JobID, priority int32) []error {
	out := make([]error, len(ids))
	var own []command.JobID
	var places []int
	for i, id := range ids {
		if out[i] = j.Owned(ctx, id); out[i] == nil {
			own, places = append(own, id), append(places, i)
		}
	}
	for i, err := range j.broker.SetPriority(ctx, own, priority) {
		out[places[i]] = err
	}
	return out
}

// CancelAll implements source.Submissions: what is not the asker's stays as it is.
func (j *Rule) CancelAll(ctx context.Context, targets []node.CancelTarget) []error {
	out := make([]error, len(targets))
	var own []node.CancelTarget
	var places []int
	var settle []func(error)
	for i, t := range targets {
		if out[i] = j.Owned(ctx, t.Job); out[i] != nil {
			continue
		}
		noted := func(error) {} // of single tasks nobody is told
		if t.Tasks.Len() == 0 {
			noted = j.noteCancel(ctx, t.Job)
		}
		own, places, settle = append(own, t), append(places, i), append(settle, noted)
	}
	for i, err := range j.broker.CancelAll(ctx, own) {
		out[places[i]] = err
		settle[i](err)
	}
	return out
}

// Logs reads what a task has written.
func (j *Rule) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	if err := j.Owned(ctx, q.Job); err != nil {
		return nil, err
	}
	return j.broker.Logs(ctx, q)
}

// Results implements source.Files: what a job has left is its user's.
func (j *Rule) Results(
	ctx context.Context, id command.JobID, from uint32, most int,
) ([]node.TaskResult, uint32, error) {
	if err := j.Owned(ctx, id); err != nil {
		return nil, 0, err
	}
	return j.broker.Results(ctx, id, from, most)
}

// Why implements source.Whys.
func (j *Rule) Why(ctx context.Context, id command.JobID) (node.Why, error) {
	if err := j.visible(ctx, id); err != nil {
		return node.Why{}, err
	}
	w, err := j.broker.Why(ctx, id)
	if j.sees(ctx, id) == node.SeesAll {
		w.User, w.CancelledBy = j.Whose(id), j.CancelledBy(id, w.State)
	} else {
		w.Notices = nil
	}
	return w, err
}

// FindTasks implements source.Tasks.
func (j *Rule) FindTasks(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error) {
	if err := j.visible(ctx, id); err != nil {
		return nil, 0, err
	}
	return j.broker.FindTasks(ctx, id, q)
}

// visible returns nil if who asks may know of a job at all.
func (j *Rule) visible(ctx context.Context, id command.JobID) error {
	if j.sees(ctx, id) != node.SeesNothing {
		return nil
	}
	return j.Owned(ctx, id)
}
