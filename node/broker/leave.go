package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// leavePatience is how long a leave waits for what runs here.
const leavePatience = 10 * time.Minute

// departure drains a site, and takes it out of the federation.
type departure struct {
	*process
	order    coord.Log
	site     string
	handlers map[string]executor.Handler
	unstage  func() // ends what prepares starts

	leaveMu sync.Mutex
	leaving bool
	hurried bool
	hurry   chan struct{} // closed by the first leave with now
	left    chan struct{} // closed once the site has left
}

func newDeparture(p *process, cfg *Config, handlers map[string]executor.Handler, unstage func()) *departure {
	return &departure{
		process: p, order: cfg.Log, site: cfg.Site, handlers: handlers, unstage: unstage,
		hurry: make(chan struct{}), left: make(chan struct{}),
	}
}

// Drain has the site take on nothing for others any more; with own, its own
// users' work goes to the federation, too. What runs here goes on.
func (d *departure) Drain(ctx context.Context, own bool) error {
	return d.setDrain(ctx, core.Drain{On: true, Own: own})
}

// Resume ends a drain; a site that leaves cannot be resumed.
func (d *departure) Resume(ctx context.Context) error {
	d.leaveMu.Lock()
	leaving := d.leaving
	d.leaveMu.Unlock()
	if leaving {
		return fmt.Errorf("resume: %w: start the broker again to come back", node.ErrLeaving)
	}
	return d.setDrain(ctx, core.Drain{})
}

func (d *departure) setDrain(ctx context.Context, drain core.Drain) error {
	done := make(chan struct{})
	if !d.post(core.DrainEvent{Drain: drain, Done: func() { close(done) }}) {
		return fmt.Errorf("drain: %w", node.ErrStopping)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain: %w", context.Cause(ctx))
	case <-d.ctx.Done():
		return fmt.Errorf("drain: %w", node.ErrStopping)
	}
}

// Draining tells what the site takes on: nothing for others (on), nothing for
// its own users either (own).
func (d *departure) Draining(ctx context.Context) (on, own bool) {
	_ = d.query(ctx, func(c *core.Core) { on, own = c.Draining() }) // false when stopping
	return on, own
}

// Leave takes the site out of the federation: it drains for up to ten minutes
// (not at all with now), hands back what still runs, and says goodbye. Its
// waiting jobs are withdrawn until it comes back; with forget they end as lost.
// The broker is to be stopped afterwards: Left is closed. Leave returns once
// the drain has begun; its progress is in the state. A second call with now
// ends the waiting.
func (d *departure) Leave(ctx context.Context, now, forget bool) error {
	if d.order.Status().Lead == "" {
		return fmt.Errorf("leave: the federation is out of reach and cannot be told: stop the broker instead: %w", node.ErrNoQuorum)
	}
	if err := d.setDrain(ctx, core.Drain{On: true, Own: true}); err != nil {
		return err
	}
	d.leaveMu.Lock()
	again := d.leaving
	d.leaving = true
	if now && !d.hurried {
		d.hurried = true
		close(d.hurry)
	}
	d.leaveMu.Unlock()
	if !again {
		d.goroutine(func() { d.leave(forget) })
	}
	return nil
}

// Left is closed when the site has left.
func (d *departure) Left() <-chan struct{} { return d.left }

func (d *departure) leave(forget bool) {
	d.log.Info().Msg("the site leaves the federation")
	d.awaitIdle()
	d.handBack()
	if err := d.proposeDeparture(forget); err != nil {
		d.endUnless(err)
		return
	}
	if err := d.setDrain(d.ctx, core.Drain{}); err != nil { // a return is a fresh start
		return
	}
	if err := d.order.Demote(d.ctx, d.site); err != nil && d.ctx.Err() == nil {
		d.log.Warn().Err(err).Msg("the site left, but still counts as a voter")
	}
	close(d.left)
}

// awaitIdle waits until nothing runs here, patience is over, or somebody hurries.
func (d *departure) awaitIdle() {
	ctx, cancel := context.WithTimeout(d.ctx, leavePatience)
	defer cancel()
	d.goroutine(func() {
		select {
		case <-d.hurry:
			cancel()
		case <-ctx.Done():
		}
	})
	d.until(ctx, (*core.Core).Idle)
}

// proposeDeparture has the federation park the site, or forget it.
func (d *departure) proposeDeparture(forget bool) error {
	body := command.Body(&command.Leave{})
	if forget {
		body = &command.Forget{Site: d.site}
	}
	done := make(chan command.Code, 1)
	err := d.query(d.ctx, func(c *core.Core) { c.ProposeDeparture(body, done) })
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
	case <-d.ctx.Done():
		return fmt.Errorf("leave the federation: %w", node.ErrStopping)
	}
}

// handBack stops what still runs and returns it to the queue, without a loss.
func (d *departure) handBack() {
	_ = d.query(d.ctx, (*core.Core).HandBackAll) // ends with the broker
	d.unstage()
	for name, h := range d.handlers {
		if err := h.End(d.ctx); err != nil && d.ctx.Err() == nil {
			d.log.Warn().Err(err).Str("handler", name).Msg("tasks not ended")
		}
	}
	d.until(d.ctx, (*core.Core).Idle)
}
