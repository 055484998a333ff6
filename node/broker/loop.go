package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/trouble"
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
	if g.early && slices.ContainsFunc(evs, func(ev core.Event) bool { _, lease := ev.(core.LeaseEvent); return lease }) {
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
		b.commit(fx)
	}
	return fx.Publishes
}

// commit hands a turn to commitLoop, in order, without waiting for it.
func (b *Broker) commit(fx *core.Effects) {
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

// backlog returns what the loop waits for besides ticks: events unless too much
// waits for the journal, and room for the oldest turn that does.
func (b *Broker) backlog() (events <-chan core.Event, commits chan<- *core.Effects, oldest *core.Effects) {
	if len(b.behind) == 0 {
		return b.events, nil, nil
	}
	if len(b.behind) < maxBehind {
		events = b.events
	}
	return events, b.commits, b.behind[0]
}

// performNow carries out what depends on no record of this turn.
func (b *Broker) performNow(fx *core.Effects) {
	if fx.Fence != 0 {
		b.extend(fx.Fence)
	}
	for _, st := range fx.Stops {
		b.goroutine(func() { b.stop(st) })
	}
	var ready []command.Command
	ready, fx.Propose = splitReady(fx.Propose)
	b.proposeAll(ready)
	if fx.Register != nil {
		b.goroutine(func() { b.register(fx.Register.Held, fx.Register.Lost) })
	}
	if fx.Demand != nil {
		for _, h := range b.handlers {
			h.Published(*fx.Demand)
		}
	}
}

// splitReady parts commands that say what has happened from those that must
// not be sent before their record is synced (architecture D5).
func splitReady(cmds []command.Command) (ready, recorded []command.Command) {
	for _, cmd := range cmds {
		switch cmd.Body.(type) {
		case *command.Submit, *command.Usage:
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
	group := make([]*core.Effects, 0, maxGroup)
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
		if mutate.On("no-journal-sync") {
			b.syncLater(group)
		} else if err := b.sync(group); err != nil {
			b.fail(err)
			return
		}
		if slices.ContainsFunc(group, func(fx *core.Effects) bool { return fx.Publishes }) {
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
func (b *Broker) sync(group []*core.Effects) error {
	for _, fx := range group {
		b.unsynced = append(b.unsynced, fx.Writes...)
	}
	urgent := slices.ContainsFunc(b.unsynced, func(w record.Write) bool { return !w.Lazy })
	if !urgent && len(b.unsynced) < maxLazy {
		return nil
	}
	start := time.Now()
	if err := b.cfg.Journal.Commit(b.unsynced); err != nil {
		return err
	}
	b.unsynced = b.unsynced[:0]
	b.metrics.synced(time.Since(start))
	return nil
}

// perform carries out what the journal now covers.
func (b *Broker) perform(fx *core.Effects) {
	for _, st := range fx.Starts {
		b.goroutine(func() { b.start(st) })
	}
	b.proposeAll(fx.Propose)
	for _, reply := range fx.Replies {
		reply()
	}
	for _, f := range fx.Forgets {
		select {
		case b.forgets <- f:
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) start(st core.StartEffect) {
	h := b.handlers[st.Handler]
	if h == nil {
		b.post(core.RefusedEvent{ID: st.ID, Err: fmt.Errorf("%w: no handler %q", executor.ErrUnfit, st.Handler)})
		return
	}
	if err := h.Start(b.ctx, st.Task); err != nil {
		b.logTrouble(st.ID, err)
		b.post(core.RefusedEvent{ID: st.ID, Err: err})
		return
	}
	b.post(core.AcceptedEvent{ID: st.ID})
}

// logTrouble tells the operator why tasks cannot be started here, if that is not the
// tasks' fault, nor that the machine is full.
func (b *Broker) logTrouble(id executor.ID, err error) {
	if trouble.ClassOf(err) == trouble.DeclinedTrouble && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Stringer("attempt", id).
			Msg("a task could not be started, by this site's own trouble: it is handed back, and its machine rests for a while")
	}
}

func (b *Broker) stop(st core.StopEffect) {
	h := b.handlers[st.Handler]
	if h == nil {
		return
	}
	if err := h.Stop(b.ctx, st.ID, st.Why); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Warn().Err(err).Stringer("attempt", st.ID).Msg("attempt could not be stopped, will be tried again")
		b.post(core.UnstoppedEvent{ID: st.ID})
	}
}

// proposeAll sends what has numbers: a site's loss by itself, all else together.
func (b *Broker) proposeAll(cmds []command.Command) {
	rest := cmds[:0:0]
	for _, cmd := range cmds {
		if _, loss := cmd.Body.(*command.SiteLost); loss {
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

// callSize returns how many of the first commands make one call: at least one.
func callSize(cmds []command.Command) int {
	bytes := 0
	for i := range cmds {
		if submit, ok := cmds[i].Body.(*command.Submit); ok {
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
func (b *Broker) propose(cmds []command.Command) {
	results, err := b.cfg.Log.Propose(b.ctx, cmds...)
	if err != nil && b.ctx.Err() == nil {
		b.fail(fmt.Errorf("propose %d commands: %w", len(cmds), err))
		return
	}
	b.post(core.ResultEvent{Cmds: cmds, Results: results, Err: err})
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

func (b *Broker) forget(f core.HandlerID) {
	h := b.handlers[f.Handler]
	if h == nil {
		return
	}
	if err := h.Forget(b.ctx, f.ID); err != nil && b.ctx.Err() == nil {
		b.cfg.Logger.Debug().Err(err).Stringer("attempt", f.ID).Msg("attempt not forgotten")
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
	b.startProgress.record(ev)
	switch {
	case ev.Ended != nil:
		if ev.Ended.Cause == executor.Declined {
			b.logTrouble(ev.ID, errors.New(ev.Ended.Detail))
		}
		b.post(core.EndedEvent{ID: ev.ID, Result: *ev.Ended})
	case ev.Started:
		b.post(core.StartedEvent{ID: ev.ID})
	case ev.Capacity:
		b.post(core.CapacityEvent{Handler: h.Name(), Machines: h.Capacity()})
	}
}

// post gives an event to the loop; it reports false when the broker stops.
func (b *Broker) post(ev core.Event) bool {
	select {
	case b.events <- ev:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// query runs f on the loop's goroutine and waits for it.
func (b *Broker) query(ctx context.Context, f func(*core.Core)) error {
	done := make(chan struct{})
	if !b.post(core.AskEvent(func(c *core.Core) { f(c); close(done) })) {
		return fmt.Errorf("ask broker: %w", node.ErrStopping)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask broker: %w", context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("ask broker: %w", node.ErrStopping)
	}
}
