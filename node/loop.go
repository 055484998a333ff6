package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// maxTurn bounds the events of one turn of the loop.
const maxTurn = 512

// loop is the one goroutine that drives the core: it takes the events that have
// come and steps through them. commitLoop syncs behind it, so that a slow disk
// delays what must be recorded first, and nothing else.
func (b *Broker) loop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	evs := make([]event, 0, maxTurn)
	gate := submitGate{early: true}
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for {
		evs = evs[:0]
		events, commits, oldest := b.backlog()
		select {
		case ev := <-events:
			evs = append(evs, ev)
		case commits <- oldest:
			b.behind = slices.Delete(b.behind, 0, 1)
			continue
		case <-b.synced:
			evs = gate.open(evs)
		case <-patience.C:
			evs = gate.begin(evs)
		case <-b.cfg.Replica.wake:
			evs = append(evs, stateEvent{})
		case <-tick.C:
			evs = append(evs, tickEvent{})
		case <-b.ctx.Done():
			return
		}
		if evs = gate.pass(b.more(evs)); len(evs) > 0 {
			gate.syncing = b.turn(evs) || gate.syncing
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
	held    []event
}

// startPatience is longer than it takes to elect a lead and to register.
const startPatience = 5 * time.Second

// pass keeps the submissions of evs back while the gate is closed. A lease is
// the sign that the federation has taken this broker in.
func (g *submitGate) pass(evs []event) []event {
	if g.early && slices.ContainsFunc(evs, func(ev event) bool { _, lease := ev.(leaseEvent); return lease }) {
		evs = g.begin(evs)
	}
	if !g.early && !g.syncing {
		return evs
	}
	return slices.DeleteFunc(evs, func(ev event) bool {
		_, submit := ev.(submitEvent)
		if submit {
			g.held = append(g.held, ev)
		}
		return submit
	})
}

// open ends the wait for a sync.
func (g *submitGate) open(evs []event) []event {
	g.syncing = false
	return g.release(evs)
}

// begin ends the wait for the federation.
func (g *submitGate) begin(evs []event) []event {
	g.early = false
	return g.release(evs)
}

// release lets the held submissions go, in their order, if nothing closes the
// gate. They stand after what has come so far and before what comes later.
func (g *submitGate) release(evs []event) []event {
	if g.early || g.syncing {
		return evs
	}
	evs = append(evs, g.held...)
	clear(g.held)
	g.held = g.held[:0]
	return evs
}

// more takes the events that are there already.
func (b *Broker) more(evs []event) []event {
	for len(evs) < maxTurn && len(b.behind) < maxBehind {
		select {
		case ev := <-b.events:
			evs = append(evs, ev)
		default:
			return evs
		}
	}
	return evs
}

// turn steps through one group of events. What needs no record goes out at
// once: outcomes and fences must not wait for a disk. The rest waits for the
// sync in its order. It reports whether a publication is among it.
func (b *Broker) turn(evs []event) (publishes bool) {
	fx := &effects{}
	b.core.now = readClock()
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, ev := range evs {
			b.core.step(ev, s, fx)
		}
		b.core.settle(s, fx)
	})
	b.performNow(fx)
	if fx.recorded() {
		b.commit(fx)
	}
	return fx.publishes
}

// commit hands a turn to commitLoop, in order, without waiting for it.
func (b *Broker) commit(fx *effects) {
	if len(b.behind) == 0 {
		select {
		case b.commits <- fx:
			return
		default:
		}
	}
	b.behind = append(b.behind, fx)
}

// maxBehind is how many turns may wait for commitLoop before the loop takes no
// more events; a journal that hangs so long is given up.
const maxBehind = 4096

// backlog is what the loop waits for besides ticks: events unless too much
// waits for the journal, and room for the oldest turn that does.
func (b *Broker) backlog() (events <-chan event, commits chan<- *effects, oldest *effects) {
	if len(b.behind) == 0 {
		return b.events, nil, nil
	}
	if len(b.behind) < maxBehind {
		events = b.events
	}
	return events, b.commits, b.behind[0]
}

// recorded reports whether anything of the turn waits for the journal.
func (fx *effects) recorded() bool {
	return len(fx.writes)+len(fx.starts)+len(fx.replies)+len(fx.forgets)+len(fx.propose) > 0
}

// performNow carries out what depends on no record of this turn.
func (b *Broker) performNow(fx *effects) {
	if fx.fence != 0 {
		b.extend(fx.fence)
	}
	for _, st := range fx.stops {
		b.goroutine(func() { b.stop(st) })
	}
	var ready []fsm.Command
	ready, fx.propose = splitReady(fx.propose)
	b.proposeAll(ready)
	if fx.register != nil {
		b.goroutine(func() { b.register(fx.register.held, fx.register.lost) })
	}
	if fx.demand != nil {
		for _, h := range b.handlers {
			h.Published(*fx.demand)
		}
	}
}

// splitReady parts commands that say what has happened from those that must
// not be sent before their record is synced (architecture D5).
func splitReady(cmds []fsm.Command) (ready, recorded []fsm.Command) {
	for _, cmd := range cmds {
		switch cmd.Body.(type) {
		case *fsm.Submit, *fsm.Usage:
			recorded = append(recorded, cmd)
		default:
			ready = append(ready, cmd)
		}
	}
	return ready, recorded
}

// commitLoop syncs what turns have left, all that waits in one sync, and then
// carries out the effects in the order of the turns.
func (b *Broker) commitLoop() {
	group := make([]*effects, 0, maxGroup)
	for {
		select {
		case fx := <-b.commits:
			group = append(group[:0], fx)
		case <-b.ctx.Done():
			return
		}
		for more := true; more && len(group) < maxGroup; {
			select {
			case fx := <-b.commits:
				group = append(group, fx)
			default:
				more = false
			}
		}
		if mutated("no-journal-sync") {
			b.syncLater(group)
		} else if err := b.sync(group); err != nil {
			b.fail(err)
			return
		}
		if slices.ContainsFunc(group, func(fx *effects) bool { return fx.publishes }) {
			select {
			case b.synced <- struct{}{}:
			default: // one signal opens the gate
			}
		}
		for _, fx := range group {
			b.perform(fx)
		}
	}
}

const (
	// maxGroup bounds the turns of one sync.
	maxGroup = 64
	// maxLazy is how many lazy writes wait for a sync at most.
	maxLazy = 1000
)

// sync makes the turns' writes durable, and what was put off until now.
func (b *Broker) sync(group []*effects) error {
	for _, fx := range group {
		b.unsynced = append(b.unsynced, fx.writes...)
	}
	urgent := slices.ContainsFunc(b.unsynced, func(w write) bool { return !w.lazy })
	if !urgent && len(b.unsynced) < maxLazy {
		return nil
	}
	start := time.Now()
	if err := b.cfg.Journal.commit(b.unsynced); err != nil {
		return err
	}
	b.unsynced = b.unsynced[:0]
	b.metrics.synced(time.Since(start))
	return nil
}

// perform carries out what the journal now covers.
func (b *Broker) perform(fx *effects) {
	for _, st := range fx.starts {
		b.goroutine(func() { b.start(st) })
	}
	b.proposeAll(fx.propose)
	for _, reply := range fx.replies {
		reply()
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
		b.logTrouble(st.id, err)
		b.post(refusedEvent{st.id, err})
		return
	}
	b.post(acceptedEvent{st.id})
}

// logTrouble tells the operator why tasks cannot be started here, if that is not the
// tasks' fault, nor that the machine is full.
func (b *Broker) logTrouble(id executor.ID, err error) {
	if classOf(err) == declinedTrouble && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Stringer("attempt", id).
			Msg("a task could not be started, by this site's own trouble: it is handed back, and its machine rests for a while")
	}
}

func (b *Broker) stop(st stopEffect) {
	h := b.handlers[st.handler]
	if h == nil {
		return
	}
	if err := h.Stop(b.ctx, st.id, st.why); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Stringer("attempt", st.id).Msg("attempt could not be stopped, will be tried again")
		b.post(unstoppedEvent{st.id})
	}
}

// proposeAll sends what has numbers: a site's loss by itself, all else together.
func (b *Broker) proposeAll(cmds []fsm.Command) {
	rest := cmds[:0:0]
	for _, cmd := range cmds {
		if _, loss := cmd.Body.(*fsm.SiteLost); loss {
			b.goroutine(func() { b.proposeLoss(cmd) })
			continue
		}
		rest = append(rest, cmd)
	}
	for len(rest) > 0 {
		n := callSize(rest)
		call := rest[:n:n]
		rest = rest[n:]
		b.goroutine(func() { b.propose(call) })
	}
}

const (
	// One call to the log holds at most so many commands and about so many bytes.
	maxCallCommands = 256
	maxCallBytes    = 2 << 20
)

// callSize is how many of the first commands make one call: at least one.
func callSize(cmds []fsm.Command) int {
	bytes := 0
	for i := range cmds {
		if submit, ok := cmds[i].Body.(*fsm.Submit); ok {
			for j := range submit.Jobs {
				bytes += submit.Jobs[j].SizeBound()
			}
		}
		if i > 0 && (i == maxCallCommands || bytes > maxCallBytes) {
			return i
		}
	}
	return len(cmds)
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
		case ev, open := <-h.Events():
			if !open {
				return
			}
			b.handle(h, ev)
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) handle(h executor.Handler, ev executor.Event) {
	b.doings.note(ev)
	switch {
	case ev.Ended != nil:
		if ev.Ended.Cause == executor.Declined {
			b.logTrouble(ev.ID, errors.New(ev.Ended.Detail))
		}
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
