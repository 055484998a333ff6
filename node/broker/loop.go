package broker

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core"
)

// maxTurn bounds the events of one turn of the loop.
const maxTurn = 512

// loop is the one goroutine that drives the core: it takes the events that have
// come and steps through them. commitLoop syncs behind it, so that a slow disk
// delays what must be recorded first, and nothing else.
func (b *Broker) loop() {
	tick := time.NewTicker(core.TickEvery)
	defer tick.Stop()
	evs := make([]core.Event, 0, maxTurn)
	gate := newSubmitGate(b.cfg.Far)
	defer gate.alarm.Stop()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for {
		evs = evs[:0]
		commits, oldest := b.committer.backlog()
		events := b.events
		if b.committer.isFull() {
			events = nil
		}
		select {
		case ev := <-events:
			evs = append(evs, ev)
		case commits <- oldest:
			b.committer.sent()
			continue
		case <-b.committer.synced:
			evs = gate.open(evs)
		case <-gate.alarm.C:
			evs = gate.release(evs)
		case <-patience.C:
			evs = gate.openAtStart(evs)
		case <-b.cfg.Replica.Woken():
			evs = append(evs, core.StateEvent{})
		case <-tick.C:
			evs = append(evs, core.TickEvent{})
		case <-b.ctx.Done():
			return
		}
		if evs = gate.pass(b.more(evs)); len(evs) > 0 {
			if fx := b.stepGroup(evs); fx.Publishes {
				gate.publishes(evs, fx.Propose)
			}
		}
	}
}

// more takes the events that are there already.
func (b *Broker) more(evs []core.Event) []core.Event {
	for len(evs) < maxTurn && !b.committer.isFull() {
		select {
		case ev := <-b.events:
			evs = append(evs, ev)
		default:
			return evs
		}
	}
	return evs
}

// stepGroup steps through one group of events. What needs no record goes out at
// once: outcomes and fences must not wait for a disk. The rest waits for the
// sync in its order, and is returned.
func (b *Broker) stepGroup(evs []core.Event) *core.Effects {
	fx := &core.Effects{}
	b.core.SetClock(readClock())
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, ev := range evs {
			b.core.Step(ev, s, fx)
		}
		b.core.Settle(s, fx)
	})
	b.performNow(fx)
	if fx.Recorded() {
		b.committer.commit(fx)
	}
	return fx
}

// performNow carries out what depends on no record of this turn.
func (b *Broker) performNow(fx *core.Effects) {
	if fx.Fence != 0 {
		b.runner.extend(fx.Fence)
	}
	for _, st := range fx.Stops {
		b.goroutine(func() { b.runner.stop(st) })
	}
	for _, c := range fx.Collects {
		b.goroutine(func() { b.runner.collect(c) })
	}
	for _, a := range fx.Asks {
		b.goroutine(func() { b.keyKeeper.ask(a) })
	}
	var ready []command.Command
	ready, fx.Propose = splitReady(fx.Propose)
	b.proposer.proposeAll(ready)
	if fx.LostBefore != 0 {
		b.judgeLoss(fx.LostBefore)
	}
	if fx.Register != nil {
		b.goroutine(func() { b.registrar.register(fx.Register.Held, fx.Register.Lost) })
	}
	if fx.Demand != nil {
		for _, h := range b.cfg.Handlers {
			h.Published(*fx.Demand)
		}
	}
}

// splitReady parts commands that say what has happened from those that must
// not be sent before their record is synced (architecture D5).
func splitReady(cmds []command.Command) (ready, recorded []command.Command) {
	for unit := range units(cmds) {
		switch unit[0].Body.(type) {
		case *command.Submit, *command.Usage:
			recorded = append(recorded, unit...)
		default:
			ready = append(ready, unit...)
		}
	}
	return ready, recorded
}

// perform carries out what the journal now covers.
func (b *Broker) perform(fx *core.Effects) {
	for _, st := range fx.Starts {
		b.goroutine(func() { b.runner.start(st) })
	}
	b.proposer.proposeAll(fx.Propose)
	for _, reply := range fx.Replies {
		reply()
	}
	for _, f := range fx.Forgets {
		select {
		case b.runner.forgets <- f:
		case <-b.ctx.Done():
			return
		}
	}
}
