package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// Logs opens a stream of an attempt that ran here, or names who has it: the
// task's last attempt is where the state says (*ElsewhereError), an earlier one
// at any site (*AnywhereError). With Follow it first waits for the task to start.
func (b *Broker) Logs(ctx context.Context, q LogQuery) (io.ReadCloser, error) {
	if q.Here {
		return b.logsHere(ctx, q)
	}
	if q.Follow {
		if err := b.awaitStart(ctx, q); err != nil {
			return nil, err
		}
	}
	task, err := b.task(ctx, q.Job, q.Task)
	if err != nil {
		return nil, err
	}
	if task.Attempt == 0 {
		return nil, fmt.Errorf("task %s/%d has not started: %w", q.Job, q.Task, ErrNotFound)
	}
	if q.Attempt > task.Attempt {
		return nil, fmt.Errorf("task %s/%d has had %d attempts: %w", q.Job, q.Task, task.Attempt, ErrNotFound)
	}
	if q.Attempt == 0 {
		q.Attempt = task.Attempt
	}
	if q.Attempt != task.Attempt || task.Site == "" { // it waits for its next attempt
		return b.earlierLogs(ctx, q, task.position)
	}
	if task.Site != b.cfg.Site {
		return nil, b.elsewhere(task.Site, "executor")
	}
	id := executor.ID{Job: q.Job.String(), Task: task.position, Attempt: task.Attempt, Token: task.Token}
	if err := b.awaitAccepted(ctx, id); err != nil {
		return nil, err
	}
	return b.logsOf(ctx, id, q)
}

// earlierLogs reads an attempt of which the state does not say where it ran:
// here, or at any of the sites that the job may run at.
func (b *Broker) earlierLogs(ctx context.Context, q LogQuery, position uint32) (io.ReadCloser, error) {
	what := q.attemptName()
	q.Task = position
	r, err := b.logsHere(ctx, q)
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrOutputGone) { // nobody else has that
		return r, err
	}
	if others := b.mayHaveRun(q.Job); len(others) > 0 {
		return nil, &AnywhereError{Query: q, What: what, Sites: others}
	}
	return nil, err
}

// logsHere reads an attempt that ran at this site, whatever the state says.
func (b *Broker) logsHere(ctx context.Context, q LogQuery) (io.ReadCloser, error) {
	for _, h := range b.handlers {
		f, ok := h.(executor.Finder)
		if !ok {
			continue
		}
		if id, found := f.Find(q.Job.String(), q.Task, q.Attempt); found {
			return b.logsOf(ctx, id, q)
		}
	}
	if err := b.removedOutput(q); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s did not run at %s, or its output was removed long ago: %w", q.attemptName(), b.cfg.Site, ErrNotFound)
}

// removedOutput says why and when this site has removed an attempt's output, nil if it
// knows nothing of that. REQUIRES: q.Task is a position, q.Attempt is not 0.
func (b *Broker) removedOutput(q LogQuery) error {
	for _, h := range b.handlers {
		past, ok := h.(executor.OutputHistory)
		if !ok {
			continue
		}
		r, found := past.RemovedOutput(q.Job.String(), q.Task, q.Attempt)
		if !found {
			continue
		}
		why := "to make room: all outputs together took more than task_logs.max_bytes"
		if r.ByAge {
			why = "as it was older than task_logs.keep"
		}
		return fmt.Errorf("the output of %s was removed by site %s at %s, %s: %w",
			q.attemptName(), b.cfg.Site, r.At.UTC().Format("2006-01-02 15:04:05 MST"), why, ErrOutputGone)
	}
	return nil
}

// attemptName is for people.
func (q LogQuery) attemptName() string {
	return fmt.Sprintf("attempt %d of task %s/%d", q.Attempt, q.Job, q.Task)
}

// mayHaveRun lists the other sites that may have run a published job, those
// that are present first. A home job ran nowhere else.
func (b *Broker) mayHaveRun(id fsm.JobID) (others []ElsewhereError) {
	b.cfg.Replica.View(func(s *fsm.State) {
		job, published := s.Job(id)
		if !published {
			return
		}
		sites := s.Sites()
		slices.SortStableFunc(sites, func(a, b fsm.SiteView) int { return int(a.State) - int(b.State) })
		for i := range sites {
			v := &sites[i]
			if job.Spec.Allows(v.ID) && v.ID != b.cfg.Site && v.State != fsm.Left {
				others = append(others, ElsewhereError{Site: v.ID, HTTP: v.HTTP, Role: "executor"})
			}
		}
	})
	return others
}

// logsOf opens a stream of an attempt that one of this site's handlers has.
func (b *Broker) logsOf(ctx context.Context, id executor.ID, q LogQuery) (io.ReadCloser, error) {
	var why error
	for _, h := range b.handlers {
		r, err := h.Logs(ctx, id, q.Stream, q.Follow)
		if errors.Is(err, executor.ErrUnknownAttempt) {
			why = err
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read logs of %s: %w", id, err)
		}
		return r, nil
	}
	q.Task, q.Attempt = id.Task, id.Attempt
	if err := b.removedOutput(q); err != nil {
		return nil, err
	}
	if why != nil {
		return nil, fmt.Errorf("the output of %s is gone: %w (%w)", q.attemptName(), ErrOutputGone, why)
	}
	return nil, fmt.Errorf("the output of %s is gone: %w", q.attemptName(), ErrOutputGone)
}

// awaitAccepted returns once no start of the attempt is under way here.
func (b *Broker) awaitAccepted(ctx context.Context, id executor.ID) error {
	ready := make(chan struct{})
	err := b.ask(ctx, func(c *core) {
		a := c.attempts[id]
		if a == nil || a.accepted || a.ended != nil {
			close(ready)
			return
		}
		a.waiters = append(a.waiters, ready)
	})
	if err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, ErrStopping)
	}
}

// task reads one task, wherever its job runs.
func (b *Broker) task(ctx context.Context, id fsm.JobID, index uint32) (Task, error) {
	tasks, _, err := b.Tasks(ctx, id, index, 1)
	if err != nil {
		return Task{}, err
	}
	if len(tasks) == 0 || tasks[0].Index != index {
		return Task{}, fmt.Errorf("job %s has no task %d: %w", id, index, ErrNotFound)
	}
	return tasks[0], nil
}

// awaitStart returns when the task has had an attempt or has ended.
func (b *Broker) awaitStart(ctx context.Context, q LogQuery) error {
	sub := b.Events(b.Feed().Now(), EventFilter{Job: q.Job}) // before the first look: nothing falls in between
	for {
		t, err := b.task(ctx, q.Job, q.Task)
		if err != nil {
			return err
		}
		if t.Attempt > 0 || isEndName(t.State) {
			return nil
		}
		if _, err = sub.Next(ctx); err != nil && !errors.Is(err, ErrEventsLost) {
			return fmt.Errorf("wait for task %s/%d: %w", q.Job, q.Task, err)
		}
	}
}
