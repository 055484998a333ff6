package node

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// maxTurn bounds the events of one turn of the loop, and so its group commit.
const maxTurn = 512

// loop is the one goroutine that drives the core: it takes the events that have
// come, steps through them, syncs the journal once, and carries out the rest.
func (b *Broker) loop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	evs := make([]event, 0, maxTurn)
	for {
		evs = evs[:0]
		select {
		case ev := <-b.events:
			evs = append(evs, ev)
		case <-b.cfg.Replica.wake:
			evs = append(evs, stateEvent{})
		case <-tick.C:
			evs = append(evs, tickEvent{})
		case <-b.ctx.Done():
			return
		}
		evs = b.more(evs)
		if err := b.turn(evs); err != nil {
			b.fail(err)
			return
		}
	}
}

// more takes the events that are there already.
func (b *Broker) more(evs []event) []event {
	for len(evs) < maxTurn {
		select {
		case ev := <-b.events:
			evs = append(evs, ev)
		default:
			return evs
		}
	}
	return evs
}

// turn is one group of events, one sync, and then the effects.
func (b *Broker) turn(evs []event) error {
	fx := &effects{}
	b.core.now = readClock()
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, ev := range evs {
			b.core.step(ev, s, fx)
		}
		b.core.settle(s, fx)
	})
	if len(fx.writes) > 0 {
		start := time.Now()
		if err := b.cfg.Journal.commit(fx.writes); err != nil {
			return err
		}
		b.metrics.synced(time.Since(start))
	}
	b.perform(fx)
	return nil
}

// perform carries out what the journal now covers.
func (b *Broker) perform(fx *effects) {
	for _, st := range fx.starts {
		b.goroutine(func() { b.start(st) })
	}
	for _, st := range fx.stops {
		b.goroutine(func() { b.stop(st) })
	}
	if len(fx.propose) > 0 {
		b.goroutine(func() { b.propose(fx.propose) })
	}
	for _, reply := range fx.replies {
		reply()
	}
	if fx.demand != nil {
		for _, h := range b.handlers {
			h.Published(*fx.demand)
		}
	}
	for _, f := range fx.forgets {
		select {
		case b.forgets <- f:
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) start(st startEffect) {
	h := b.handlers[st.handler]
	if h == nil {
		b.post(refusedEvent{st.id, fmt.Errorf("%w: no handler %q", executor.ErrUnfit, st.handler)})
		return
	}
	if err := h.Start(b.ctx, st.task); err != nil {
		b.post(refusedEvent{st.id, err})
		return
	}
	b.post(acceptedEvent{st.id})
}

func (b *Broker) stop(st stopEffect) {
	h := b.handlers[st.handler]
	if h == nil {
		return
	}
	if err := h.Stop(b.ctx, st.id, st.why); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Stringer("attempt", st.id).Msg("attempt could not be stopped")
	}
}

// propose has commands ordered; the log retries under the same ids until they
// are executed, so an error comes only when the broker stops.
func (b *Broker) propose(cmds []fsm.Command) {
	results, err := b.cfg.Log.Propose(b.ctx, cmds...)
	if err != nil && b.ctx.Err() == nil {
		b.fail(fmt.Errorf("propose %d commands: %w", len(cmds), err))
		return
	}
	b.post(resultEvent{cmds: cmds, results: results, err: err})
}

// forgetLoop drops settled attempts at their handlers, aside from the loop.
func (b *Broker) forgetLoop() {
	for {
		select {
		case f := <-b.forgets:
			b.forget(f)
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) forget(f handlerID) {
	h := b.handlers[f.handler]
	if h == nil {
		return
	}
	if err := h.Forget(b.ctx, f.id); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Debug().Err(err).Stringer("attempt", f.id).Msg("attempt not forgotten")
	}
}

// listen passes a handler's events on.
func (b *Broker) listen(h executor.Handler) {
	for {
		select {
		case ev := <-h.Events():
			b.handle(h, ev)
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) handle(h executor.Handler, ev executor.Event) {
	switch {
	case ev.Ended != nil:
		b.post(endedEvent{ev.ID, *ev.Ended})
	case ev.Started:
		b.post(startedEvent{ev.ID})
	case ev.Capacity:
		b.post(capacityEvent{h.Name(), h.Capacity()})
	}
}

// post gives an event to the loop; it reports false when the broker stops.
func (b *Broker) post(ev event) bool {
	select {
	case b.events <- ev:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// ask runs f on the loop's goroutine and waits for it.
func (b *Broker) ask(ctx context.Context, f func(*core)) error {
	done := make(chan struct{})
	if !b.post(askEvent(func(c *core) { f(c); close(done) })) {
		return fmt.Errorf("ask broker: %w", ErrStopping)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask broker: %w", context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("ask broker: %w", ErrStopping)
	}
}
