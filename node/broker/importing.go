package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// AwaitInputs returns this site's jobs that are held until their inputs are here (node.Request.Importing), oldest
// first, those of earlier runs of the broker as well. It waits until the broker has begun.
func (b *Broker) AwaitInputs(ctx context.Context) (ids []command.JobID, err error) {
	err = b.query(ctx, func(c *core.Core) {
		for _, num := range c.AwaitInputs() {
			ids = append(ids, command.JobID{Site: b.cfg.Site, Num: num})
		}
	})
	return ids, err
}

// Brought has a job run that is held for its inputs: spec is its own, with inputs that are here. Errors wrap
// node.ErrEnded if the job waits for none any more, and Submit's for inputs that are not here.
func (b *Broker) Brought(ctx context.Context, id command.JobID, spec jobspec.Spec) error {
	if b.owned == nil {
		return fmt.Errorf("inputs of job %s: %w", id, node.ErrNoFiles)
	}
	found, err := b.owned.inputs.Begin().Resolve(b.UserOf(id.Num), &spec)
	if err != nil {
		return err
	}
	b.owned.inputs.Keep(id.Num, found) // before the job may be anywhere that asks for them
	err = b.tellBrought(ctx, core.BroughtEvent{Num: id.Num, Spec: spec})
	if errors.Is(err, node.ErrEnded) {
		b.owned.inputs.Release(id.Num) // other errors leave open what is done; what has ended is let go later, too
	}
	return err
}

// NotBrought ends a job that is held for its inputs, since they will not be here; why is for people. Errors wrap
// node.ErrEnded if the job waits for none any more: its user may have cancelled it a moment ago.
func (b *Broker) NotBrought(ctx context.Context, id command.JobID, why string) error {
	return b.tellBrought(ctx, core.BroughtEvent{Num: id.Num, Why: why})
}

// tellBrought has the core know, and returns what became of it.
func (b *Broker) tellBrought(ctx context.Context, ev core.BroughtEvent) (became error) {
	err := b.postAndWait(ctx, func(done func()) core.Event {
		ev.Reply = func(err error) {
			became = err
			done()
		}
		return ev
	})
	if err != nil {
		return fmt.Errorf("inputs of job %s: %w", command.JobID{Site: b.cfg.Site, Num: ev.Num}, err)
	}
	return became
}

// AttachedEnded returns what is closed once a job has ended to which something is attached, or if none is.
func (b *Broker) AttachedEnded(id command.JobID) <-chan struct{} {
	return b.exporter.book.Ended(id.Num)
}
