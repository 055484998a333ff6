package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// leavePatience is how long a leave waits for what runs here.
const leavePatience = 10 * time.Minute

// Drain has the site take on nothing for others any more; with own, its own
// users' work goes to the federation, too. What runs here goes on.
func (b *Broker) Drain(ctx context.Context, own bool) error {
	return b.setDrain(ctx, core.Drain{On: true, Own: own})
}

// Resume ends a drain; a site that leaves cannot be resumed.
func (b *Broker) Resume(ctx context.Context) error {
	b.mu.Lock()
	leaving := b.leaving
	b.mu.Unlock()
	if leaving {
		return fmt.Errorf("resume: %w: start the broker again to come back", node.ErrLeaving)
	}
	return b.setDrain(ctx, core.Drain{})
}

func (b *Broker) setDrain(ctx context.Context, d core.Drain) error {
	done := make(chan struct{})
	if !b.post(core.DrainEvent{Drain: d, Done: func() { close(done) }}) {
		return fmt.Errorf("drain: %w", node.ErrStopping)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain: %w", context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("drain: %w", node.ErrStopping)
	}
}

// Draining tells what the site takes on: nothing for others (on), nothing for
// its own users either (own).
func (b *Broker) Draining(ctx context.Context) (on, own bool) {
	_ = b.query(ctx, func(c *core.Core) { on, own = c.Draining() }) // false when stopping
	return on, own
}

// Leave takes the site out of the federation: it drains for up to ten minutes
// (not at all with now), hands back what still runs, and says goodbye. Its
// waiting jobs are withdrawn until it comes back; with forget they end as lost.
// The broker is to be stopped afterwards: Left is closed. Leave returns once
// the drain has begun; its progress is in the state. A second call with now
// ends the waiting.
func (b *Broker) Leave(ctx context.Context, now, forget bool) error {
	if b.cfg.Log.Status().Lead == "" {
		return fmt.Errorf("leave: the federation is out of reach and cannot be told: stop the broker instead: %w", node.ErrNoQuorum)
	}
	if err := b.setDrain(ctx, core.Drain{On: true, Own: true}); err != nil {
		return err
	}
	b.mu.Lock()
	again := b.leaving
	b.leaving = true
	if now && !b.hurried {
		b.hurried = true
		close(b.hurry)
	}
	b.mu.Unlock()
	if !again {
		b.goroutine(func() { b.leave(forget) })
	}
	return nil
}

// Left is closed when the site has left.
func (b *Broker) Left() <-chan struct{} { return b.left }

func (b *Broker) leave(forget bool) {
	b.cfg.Logger.Info().Msg("the site leaves the federation")
	b.awaitIdle()
	b.handBack()
	if err := b.proposeDeparture(forget); err != nil {
		b.endUnless(err)
		return
	}
	if err := b.setDrain(b.ctx, core.Drain{}); err != nil { // a return is a fresh start
		return
	}
	if err := b.cfg.Log.Demote(b.ctx, b.cfg.Site); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Msg("the site left, but still counts as a voter")
	}
	close(b.left)
}

// awaitIdle waits until nothing runs here, patience is over, or somebody hurries.
func (b *Broker) awaitIdle() {
	ctx, cancel := context.WithTimeout(b.ctx, leavePatience)
	defer cancel()
	b.goroutine(func() {
		select {
		case <-b.hurry:
			cancel()
		case <-ctx.Done():
		}
	})
	b.until(ctx, (*core.Core).Idle)
}

// proposeDeparture has the federation park the site, or forget it.
func (b *Broker) proposeDeparture(forget bool) error {
	body := command.Body(&command.Leave{})
	if forget {
		body = &command.Forget{Site: b.cfg.Site}
	}
	done := make(chan command.Code, 1)
	err := b.query(b.ctx, func(c *core.Core) { c.ProposeDeparture(body, done) })
	if err != nil {
		return err
	}
	select {
	case code := <-done:
		if code == command.OldIncarnation && !forget {
			return nil // given up before the goodbye came: parked all the same
		}
		if code != command.OK {
			return fmt.Errorf("leave the federation: refused: %s", code)
		}
		return nil
	case <-b.ctx.Done():
		return fmt.Errorf("leave the federation: %w", node.ErrStopping)
	}
}

// handBack stops what still runs and returns it to the queue, without a loss.
func (b *Broker) handBack() {
	_ = b.query(b.ctx, (*core.Core).HandBackAll) // ends with the broker
	for name, h := range b.handlers {
		if err := h.End(b.ctx); err != nil && b.ctx.Err() == nil {
			b.cfg.Logger.Warn().Err(err).Str("handler", name).Msg("tasks not ended")
		}
	}
	b.until(b.ctx, (*core.Core).Idle)
}

// until waits for a condition of the core, or for ctx.
func (b *Broker) until(ctx context.Context, cond func(*core.Core) bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		over := false
		if err := b.query(ctx, func(c *core.Core) { over = cond(c) }); err != nil || over {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
