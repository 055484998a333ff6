package node

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
)

const (
	// MaxCancelTasks is how many tasks of one job one request may name to cancel.
	MaxCancelTasks = 1000
	// maxTaskCancels bounds the cancellations of single tasks that wait for the
	// quorum, over all jobs.
	maxTaskCancels = 16 << 10
)

// CancelTarget names what to cancel: a job, or some of its tasks.
type CancelTarget struct {
	Job   fsm.JobID
	Tasks Indices // empty: the whole job; at most MaxCancelTasks
}

// placeKey carries the site at whose broker a request was asked.
type placeKey struct{}

// AskedAt is for requests that another site's broker was asked and passed on: what is
// cancelled by them says so.
func AskedAt(ctx context.Context, site string) context.Context {
	return context.WithValue(ctx, placeKey{}, site)
}

// askedAt returns that site; empty: this broker's own was asked.
func askedAt(ctx context.Context) string {
	site, _ := ctx.Value(placeKey{}).(string)
	return site
}

// CancelAll ends jobs of this site, or tasks of them, all at the same time: one
// error or nil per target, in order. For another site's job it is an
// *ElsewhereError; if all that a target names has ended, it wraps ErrEnded.
func (b *Broker) CancelAll(ctx context.Context, targets []CancelTarget) []error {
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, ErrNoQuorum)
	defer cancel()
	out := make([]error, len(targets))
	waits := make([]chan error, len(targets))
	for i, t := range targets {
		switch {
		case t.Job.Site != b.cfg.Site:
			if _, out[i] = b.Job(ctx, t.Job); out[i] == nil {
				out[i] = b.elsewhere(t.Job.Site, "owner")
			}
			continue
		case t.Tasks.Len() > MaxCancelTasks:
			out[i] = fmt.Errorf("cancel tasks of job %s: %w: %d are named, at most %d at once: cancel the whole job, or ask in parts", t.Job, ErrFull, t.Tasks.Len(), MaxCancelTasks)
			continue
		}
		done := make(chan error, 1)
		if !b.post(cancelEvent{num: t.Job.Num, tasks: t.Tasks, at: askedAt(ctx), reply: func(err error) { done <- err }}) {
			out[i] = fmt.Errorf("cancel job %s: %w", t.Job, ErrStopping)
			continue
		}
		waits[i] = done
	}
	for i, done := range waits {
		if done != nil {
			out[i] = b.cancelOutcome(ctx, targets[i].Job, done)
		}
	}
	return out
}

// cancelOutcome waits for what became of a cancellation.
func (b *Broker) cancelOutcome(ctx context.Context, id fsm.JobID, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cancel job %s: %w: %s", id, context.Cause(ctx), stillOrdered)
	case <-b.ctx.Done():
		return fmt.Errorf("cancel job %s: %w", id, ErrStopping)
	}
}

// cancelTasks ends some tasks of one of this site's jobs.
func (c *core) cancelTasks(ev cancelEvent, s stateReader, fx *effects) {
	id := fsm.JobID{Site: c.site, Num: ev.num}
	refuse := func(err error) {
		fx.replies = append(fx.replies, func() { ev.reply(fmt.Errorf("cancel tasks of job %s: %w", id, err)) })
	}
	if job := c.home.jobs[ev.num]; job != nil {
		positions, err := positionsOf(&job.Spec, ev.tasks)
		if err == nil {
			err = c.cancelHomeTasks(ev.num, positions, ev.at, fx)
		}
		if err != nil {
			refuse(err)
			return
		}
		fx.replies = append(fx.replies, func() { ev.reply(nil) })
		return
	}
	if c.pubs.byJob[ev.num] != nil {
		refuse(fmt.Errorf("%w: the job is on its way to the federation: try again, or cancel the whole job", ErrNotReady))
		return
	}
	job, ok := s.Job(id)
	if !ok {
		refuse(cancelError(id, fsm.UnknownJob))
		return
	}
	positions, err := positionsOf(&job.Spec, ev.tasks)
	switch {
	case err != nil:
		refuse(err)
	case c.cancels.tasks+len(positions) > maxTaskCancels:
		refuse(fmt.Errorf("%w: %d tasks of this site wait to be cancelled already: try again when there is a quorum", ErrFull, c.cancels.tasks))
	default:
		c.orderTaskCancels(id, positions, c.placeOf(ev.at), ev.reply)
	}
}

// positionsOf turns indices into positions; each must be one of the job's tasks.
func positionsOf(js *fsm.JobSpec, tasks Indices) ([]uint32, error) {
	n := numberingOf(js.Payload, js.Count)
	positions := make([]uint32, 0, min(tasks.Len(), js.Count))
	for index := range tasks.All() {
		at := n.position(index)
		if at >= n.count || n.index(at) != index {
			return nil, fmt.Errorf("it has no task %d: %w", index, ErrNotFound)
		}
		positions = append(positions, at)
	}
	return positions, nil
}

// cancelHomeTasks ends some tasks of a home job; ErrEnded if all of them have.
func (c *core) cancelHomeTasks(num uint64, positions []uint32, at string, fx *effects) error {
	if c.home.jobs[num].ended() {
		return ErrEnded
	}
	open := 0
	for _, position := range positions {
		if c.cancelHomeTask(num, position, at, fx) {
			open++
		}
	}
	if open == 0 {
		return ErrEnded
	}
	c.homeCancelled(num, fx)
	return nil
}

// orderTaskCancels has tasks of a job in the state ended, and replies once the
// outcome of all is known: nil if one of them had not ended yet.
func (c *core) orderTaskCancels(id fsm.JobID, positions []uint32, at string, reply func(error)) {
	c.cancels.tasks += len(positions)
	left, open := len(positions), 0
	var failed error
	for _, position := range positions {
		c.out.add(&fsm.Cancel{Job: id, Task: int64(position), At: at}, func(r fsm.Result, _ stateReader, fx *effects) {
			c.cancels.tasks--
			left--
			switch r.Code {
			case fsm.OK:
				open++
			case fsm.AlreadyEnded:
			default:
				failed = cancelError(id, r.Code)
			}
			switch {
			case left > 0:
				return
			case open == 0 && failed == nil:
				failed = cancelError(id, fsm.AlreadyEnded)
			case open > 0:
				failed = nil
			}
			outcome := failed
			fx.replies = append(fx.replies, func() { reply(outcome) })
		})
	}
}
