package broker

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// CancelAll ends jobs of this site, or tasks of them, all at the same time: one
// error or nil per target, in order. For another site's job it is an
// *ElsewhereError; if all that a target names has ended, it wraps ErrEnded.
func (b *Broker) CancelAll(ctx context.Context, targets []node.CancelTarget) []error {
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	out := make([]error, len(targets))
	waits := make([]chan error, len(targets))
	for i, t := range targets {
		switch {
		case t.Job.Site != b.cfg.Site:
			out[i] = b.changedElsewhere(ctx, t.Job)
			continue
		case t.Tasks.Len() > core.MaxCancelTasks:
			out[i] = fmt.Errorf("cancel tasks of job %s: %w: %d are named, at most %d at once: cancel the whole job, or ask in parts", t.Job, node.ErrFull, t.Tasks.Len(), core.MaxCancelTasks)
			continue
		}
		done := make(chan error, 1)
		if !b.post(core.CancelEvent{
			Num: t.Job.Num, Tasks: t.Tasks, At: node.AskedFrom(ctx),
			Reply: func(err error) { done <- err },
		}) {
			out[i] = fmt.Errorf("cancel job %s: %w", t.Job, node.ErrStopping)
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
func (b *Broker) cancelOutcome(ctx context.Context, id command.JobID, done <-chan error) error {
	return b.changeOutcome(ctx, fmt.Sprintf("cancel job %s", id), stillOrdered, done)
}

// changeOutcome waits for what became of a change that the core was told of. what says who wants it, in an error's
// text, and still what becomes of it if ctx ends before, "" = that is not said.
func (b *Broker) changeOutcome(ctx context.Context, what, still string, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if still != "" {
			still = ": " + still
		}
		return fmt.Errorf("%s: %w%s", what, context.Cause(ctx), still)
	case <-b.ctx.Done():
		return fmt.Errorf("%s: %w", what, node.ErrStopping)
	}
}

// changedElsewhere returns where another site's job is changed, or why that is not known.
func (b *Broker) changedElsewhere(ctx context.Context, id command.JobID) error {
	if _, err := b.Job(ctx, id); err != nil {
		return err
	}
	return b.Elsewhere(id.Site, "owner")
}
