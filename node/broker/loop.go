package broker

import (
	"slices"
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
	gate := submitGate{early: true}
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
			gate.syncing = b.stepGroup(evs) || gate.syncing
		}
	}
}

// submitGate holds submissions back while a publication is being synced: all
// that come meanwhile share the next one. A publication costs a sync, a command
// and an answer of the order, whatever the number of its jobs; without the gate
// each turn of a busy loop would make its own.
//
// It also holds them back after the broker's start, until the federation has
// taken it in: the data may turn out to be an old copy, with numbers and keys
// that were given out before. A site that finds no quorum goes on alone after
// startPatience.
type submitGate struct {
	early   bool // nobody has taken this broker in since its start
	syncing bool
	held    []core.Event
}

// startPatience is longer than it takes to elect a leader and to register.
const startPatience = 5 * time.Second

// pass keeps the submissions of evs back while the gate is closed. A lease is
// the sign that the federation has taken this broker in.
func (g *submitGate) pass(evs []core.Event) []core.Event {
	if g.early && slices.ContainsFunc(evs, func(ev core.Event) bool {
		_,
			lease := ev.(core.LeaseEvent)
		return lease
	}) {
		evs = g.openAtStart(evs)
	}
	if !g.early && !g.syncing {
		return evs
	}
	return slices.DeleteFunc(evs, func(ev core.Event) bool {
		_, submit := ev.(core.SubmitEvent)
		if submit {
			g.held = append(g.held, ev)
		}
		return submit
	})
}

// open ends the wait for a sync.
func (g *submitGate) open(evs []core.Event) []core.Event {
	g.syncing = false
	return g.release(evs)
}

// openAtStart ends the wait for the federation.
func (g *submitGate) openAtStart(evs []core.Event) []core.Event {
	g.early = false
	return g.release(evs)
}

// release lets the held submissions go, in their order, if nothing closes the
// gate. They stand after what has come so far and before what comes later.
func (g *submitGate) release(evs []core.Event) []core.Event {
	if g.early || g.syncing {
		return evs
	}
	evs = append(evs, g.held...)
	clear(g.held)
	g.held = g.held[:0]
	return evs
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
// sync in its order. It reports whether a publication is among it.
func (b *Broker) stepGroup(evs []core.Event) (publishes bool) {
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
	return fx.Publishes
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
