package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// Logs opens a stream of an attempt that ran here, or names who has it: the
// task's last attempt is where the state says (*ElsewhereError), an earlier one, or one
// that the state keeps no record of, at any site (*AnywhereError). With Follow it first
// waits for the task to start.
func (rd *Reader) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	if q.Here {
		return rd.logsHere(ctx, q)
	}
	if q.Follow {
		if err := rd.awaitStart(ctx, q); err != nil {
			return nil, err
		}
	}
	task, err := rd.task(ctx, q.Job, q.Task)
	if err != nil {
		return nil, err
	}
	switch {
	case task.Unrecorded && q.Attempt == 0:
		what := fmt.Sprintf("the output of task %s/%d", q.Job, q.Task)
		q.Task = task.Position
		return nil, &node.AnywhereError{Query: q, What: what, Sites: rd.MayHaveRun(q.Job)}
	case task.Unrecorded:
		return rd.earlierLogs(ctx, q, task.Position)
	case task.Attempt == 0 && !task.EndedAt.IsZero():
		return nil, fmt.Errorf("task %s/%d never started, it is %s: %w", q.Job, q.Task, task.State, node.ErrNotFound)
	case task.Attempt == 0:
		return nil, fmt.Errorf("task %s/%d has not started: %w", q.Job, q.Task, node.ErrNotFound)
	case q.Attempt > task.Attempt:
		return nil, fmt.Errorf("task %s/%d has had %d attempts: %w", q.Job, q.Task, task.Attempt, node.ErrNotFound)
	case q.Attempt == 0:
		q.Attempt = task.Attempt
	}
	if q.Attempt != task.Attempt || task.Site == "" { // it waits for its next attempt
		return rd.earlierLogs(ctx, q, task.Position)
	}
	id := executor.ID{Job: q.Job.String(), Task: task.Position, Attempt: task.Attempt, Token: task.Token}
	if task.Site != rd.site {
		if r, err := rd.broughtHome(id, q.Stream); err == nil {
			return r, nil
		}
		return nil, rd.Elsewhere(task.Site, "executor")
	}
	if err := rd.awaitAccepted(ctx, id); err != nil {
		return nil, err
	}
	return rd.logsOf(ctx, id, q)
}

// earlierLogs reads an attempt of which the state does not say where it ran:
// here, or at any of the sites that the job may run at.
func (rd *Reader) earlierLogs(ctx context.Context, q node.LogQuery, position uint32) (io.ReadCloser, error) {
	what := q.AttemptName()
	q.Task = position
	r, err := rd.logsHere(ctx, q)
	var here error
	switch {
	case errors.Is(err, node.ErrOutputUnreadable):
		here = err
	case !errors.Is(err, node.ErrNotFound), errors.Is(err, node.ErrOutputGone): // nobody else has that
		return r, err
	}
	if others := rd.MayHaveRun(q.Job); len(others) > 0 {
		return nil, &node.AnywhereError{Query: q, What: what, Sites: others, Here: here}
	}
	return nil, err
}

// logsHere reads an attempt that ran at this site, whatever the state says.
func (rd *Reader) logsHere(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	id, err := rd.findHere(q)
	if err != nil {
		if r, home := rd.findHome(q); home == nil {
			return r, nil
		}
		return nil, err
	}
	return rd.logsOf(ctx, id, q)
}

// findHere returns the full id of an attempt that one of this site's handlers has.
func (rd *Reader) findHere(q node.LogQuery) (executor.ID, error) {
	var unread error
	for _, h := range rd.handlers {
		f, ok := h.(executor.Finder)
		if !ok {
			continue
		}
		id, err := f.Find(q.Job.String(), q.Task, q.Attempt)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, executor.ErrUnknownAttempt) { // the next one may have it all the same
			unread = err
		}
	}
	if unread != nil {
		return executor.ID{}, rd.unreadable("the output of "+q.AttemptName(), unread)
	}
	if err := rd.removedOutput(q); err != nil {
		return executor.ID{}, err
	}
	return executor.ID{}, fmt.Errorf("%s did not run at %s, or its output was removed long ago: %w", q.AttemptName(), rd.site, node.ErrNotFound)
}

// removedOutput says why and when this site has removed an attempt's output, nil if it
// knows nothing of that. REQUIRES: q.Task is a position, q.Attempt is not 0.
func (rd *Reader) removedOutput(q node.LogQuery) error {
	return rd.removal("the output of "+q.AttemptName(), q.Job, q.Task, q.Attempt)
}

// MayHaveRun lists the other sites that may have run a published job, those
// that are present first. A home job ran nowhere else.
func (rd *Reader) MayHaveRun(id command.JobID) (others []node.ElsewhereError) {
	rd.replica.View(func(s *fsm.State) {
		job, published := s.Job(id)
		if !published {
			return
		}
		sites := s.Sites()
		slices.SortStableFunc(sites, func(a, b fsm.SiteView) int { return int(a.State) - int(b.State) })
		for i := range sites {
			v := &sites[i]
			if job.Spec.Allows(v.ID) && v.ID != rd.site && v.State != fsm.Left {
				others = append(others, node.ElsewhereError{Site: v.ID, Peer: v.Peer, Role: "executor"})
			}
		}
	})
	return others
}

// logsOf opens a stream of an attempt that one of this site's handlers has.
func (rd *Reader) logsOf(ctx context.Context, id executor.ID, q node.LogQuery) (io.ReadCloser, error) {
	var why error
	for _, h := range rd.handlers {
		r, err := h.Logs(ctx, id, q.Stream, q.Follow)
		if errors.Is(err, executor.ErrUnknownAttempt) {
			why = err
			continue
		}
		if err != nil {
			return nil, rd.unreadable("the output of "+q.AttemptName(), err)
		}
		return r, nil
	}
	q.Task, q.Attempt = id.Task, id.Attempt
	if err := rd.removedOutput(q); err != nil {
		return nil, err
	}
	if why != nil {
		return nil, fmt.Errorf("the output of %s is gone: %w (%w)", q.AttemptName(), node.ErrOutputGone, why)
	}
	return nil, fmt.Errorf("the output of %s is gone: %w", q.AttemptName(), node.ErrOutputGone)
}

// awaitAccepted returns once no start of the attempt is under way here. What the state has
// assigned and the core has not seen yet, it takes at the end of the turn in which it is
// asked first.
func (rd *Reader) awaitAccepted(ctx context.Context, id executor.ID) error {
	ready := make(chan struct{})
	known := false
	for range 2 {
		err := rd.query(ctx, func(c *core.Core) { known = c.AwaitAccepted(id, ready) })
		if err != nil {
			return err
		}
		if known {
			break
		}
	}
	if !known {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, context.Cause(ctx))
	case <-rd.ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, node.ErrStopping)
	}
}

// task reads one task, wherever its job runs.
func (rd *Reader) task(ctx context.Context, id command.JobID, index uint32) (node.Task, error) {
	tasks, _, err := rd.Tasks(ctx, id, index, 1)
	if err != nil {
		return node.Task{}, err
	}
	if len(tasks) == 0 || tasks[0].Index != index {
		return node.Task{}, fmt.Errorf("job %s has no task %d: %w", id, index, node.ErrNotFound)
	}
	return tasks[0], nil
}

// awaitStart returns when the task has had an attempt or has ended.
func (rd *Reader) awaitStart(ctx context.Context, q node.LogQuery) error {
	sub := rd.Events(rd.Feed().Now(), node.EventFilter{Job: q.Job}) // before the first look: nothing falls in between
	for {
		t, err := rd.task(ctx, q.Job, q.Task)
		if err != nil {
			return err
		}
		if t.Attempt > 0 || isEndName(t.State) {
			return nil
		}
		if _, err = sub.Next(ctx); err != nil && !errors.Is(err, node.ErrEventsLost) {
			return fmt.Errorf("wait for task %s/%d: %w", q.Job, q.Task, err)
		}
	}
}

// isEndName reports whether a task in the state of that name will not change any more.
func isEndName(name string) bool {
	for s := fsm.TaskSucceeded; s <= fsm.TaskLost; s++ {
		if s.String() == name {
			return true
		}
	}
	return false
}
